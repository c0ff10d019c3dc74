package senses

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// k. Every agent is cut off from every replica, for three leases, and returns.
//
// proves SAFE-2, DET-15
func TestAllAgentsAreCutOff(t *testing.T) {
	t.Parallel()
	s := newStage(t, plan{replicas: 2, network: []string{}})
	s.apply("web", crowd())
	before := s.settle()
	for _, way := range s.ways("network-") {
		way.freeze()
	}
	s.await("the storm", func() bool { return records[store.Status](s, store.KindStatus)["web"].Record.Storm != nil })
	lost := func() int { return records[store.Status](s, store.KindStatus)["web"].Record.Verdicts[store.Lost] }
	s.await("all being lost", func() bool { return lost() == crowd() })
	s.pass(s.ttl)
	s.statusSays("STORM: held", "SAFE-2", "override-storm web")
	untouched := func(what string) {
		t.Helper()
		c := s.since(before)
		t.Logf("%s: %s", what, c)
		if c.Judged = 0; c != (count{}) {
			t.Fatalf("%s, and none may be touched: %s", what, c)
		}
	}
	untouched("all agents are cut off, and lost")
	for _, way := range s.ways("network-") {
		way.thaw()
	}
	s.awaitCalm()
	untouched("all agents return")
}

// A storm is over when most have returned. Those that have not are replaced then, not all at once.
//
// proves SAFE-2
func TestStormEndsBitByBit(t *testing.T) {
	t.Parallel()
	const gone, cooldown = 8, 10 * time.Second
	s := newStage(t, plan{replicas: 1})
	s.apply("web", 24, "budget: {max_expansion: 20}", "storm: {window: 10s, cooldown: "+cooldown.String()+"}")
	before := s.settle()
	all := s.members("web")
	if err := s.control.Cut(all...); err != nil {
		t.Fatal(err)
	}
	s.await("all being lost", func() bool { return s.since(before).Judged == len(all) })
	s.statusSays("STORM: held", "SAFE-2", "override-storm web")
	if c := s.since(before); c != (count{Judged: len(all)}) {
		t.Fatalf("all are lost, and none may be touched: %s", c)
	}
	if err := s.control.Mend(all[gone:]...); err != nil {
		t.Fatal(err)
	}
	s.await("the end of the storm", func() bool {
		st := records[store.Status](s, store.KindStatus)["web"].Record.Storm
		return st != nil && st.Ended != ""
	})
	s.statusSays("SAFE-2")
	s.await("web being complete", func() bool { return s.complete("web", len(all)) })
	var asked []time.Time
	for _, e := range s.journal(before.revision) {
		if decided(e.Record) && strings.HasPrefix(e.Record.What, "replacement ") {
			asked = append(asked, e.Record.At)
		}
	}
	c := s.since(before)
	if c.Created != gone || c.Destroyed != gone {
		t.Fatalf("%d did not return: %s", gone, c)
	}
	slices.SortFunc(asked, func(a, b time.Time) int { return cmp.Compare(a.UnixNano(), b.UnixNano()) })
	spread := asked[len(asked)-1].Sub(asked[0])
	t.Logf("%d replacements begun within %s, after a cooldown of %s", len(asked), spread.Round(10*time.Millisecond), cooldown)
	if spread < time.Second || spread > 2*cooldown {
		t.Errorf("that is not bit by bit")
	}
}

// l. A network that is slow and loses: half a second for a word there and back, and one in twenty said again.
//
// proves SAFE-1, DET-14
func TestNetworkIsSlow(t *testing.T) {
	t.Parallel()
	s := newStage(t, plan{replicas: 2, network: []string{"-delay", "150ms", "-jitter", "150ms", "-loss", "0.05"}})
	s.apply("web", 40)
	before := s.mark()
	s.pass(8 * s.ttl)
	s.nothingDone(before, "a slow network that loses")
	s.sees("web")
}

// statusSays fails if leasehold status leaves something out.
func (s *stage) statusSays(words ...string) {
	s.t.Helper()
	said := s.leasehold("status")
	for _, w := range words {
		if !strings.Contains(said, w) {
			s.t.Errorf("leasehold status does not say %q:\n%s", w, said)
		}
	}
}
