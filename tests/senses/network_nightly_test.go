//go:build nightly

package senses

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/stage"
)

// A storm is over when most have returned. Those that have not are replaced then, not all at once.
//
// proves SAFE-2
func TestStormEndsBitByBit(t *testing.T) {
	t.Parallel()
	const gone, cooldown = 8, 10 * time.Second
	s := newStage(t, stage.Plan{Replicas: 1})
	s.Apply("web", 24, "budget: {max_expansion: 20}", "storm: {window: 10s, cooldown: "+cooldown.String()+"}")
	before := s.Settle()
	all := s.Instances("web")
	if err := s.Control.Cut(all...); err != nil {
		t.Fatal(err)
	}
	s.Await("all being lost", func() bool { return s.Since(before).Judged == len(all) })
	s.statusSays("STORM: held", "SAFE-2", "override-storm web")
	if c := s.Since(before); c != (stage.Count{Judged: len(all)}) {
		t.Fatalf("all are lost, and none may be touched: %s", c)
	}
	if err := s.Control.Mend(all[gone:]...); err != nil {
		t.Fatal(err)
	}
	s.Await("the end of the storm", func() bool {
		st := stage.Records[store.Status](s.Stage, store.KindStatus)["web"].Record.Storm
		return st != nil && st.Ended != ""
	})
	s.statusSays("SAFE-2")
	s.Await("web being complete", func() bool { return s.Complete("web", len(all)) })
	var asked []time.Time
	for _, e := range s.Journal(before.Revision) {
		if stage.Decided(e.Record) && strings.HasPrefix(e.Record.What, "replacement ") {
			asked = append(asked, e.Record.At)
		}
	}
	c := s.Since(before)
	if c.Created != gone || c.Destroyed != gone {
		t.Fatalf("%d did not return: %s", gone, c)
	}
	slices.SortFunc(asked, func(a, b time.Time) int { return cmp.Compare(a.UnixNano(), b.UnixNano()) })
	spread := asked[len(asked)-1].Sub(asked[0])
	t.Logf("%d replacements begun within %s, after a cooldown of %s", len(asked), spread.Round(10*time.Millisecond),
		cooldown)
	if spread < time.Second || spread > 2*cooldown {
		t.Errorf("that is not bit by bit")
	}
}

// A network that is slow and loses: half a second for a word there and back, and one in twenty said
// again.
//
// proves SAFE-1, DET-14
func TestNetworkIsSlow(t *testing.T) {
	t.Parallel()
	s := newStage(t, stage.Plan{Replicas: 2, Network: []string{"-delay", "150ms", "-jitter", "150ms", "-loss", "0.05"}})
	s.Apply("web", 40)
	before := s.Mark()
	s.Pass(8 * s.TTL)
	s.NothingDone(before, "a slow network that loses")
	s.Sees("web")
}
