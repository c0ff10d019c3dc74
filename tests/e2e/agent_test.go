package e2e

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// An agent that stands still is lost when its lease has ended, no sooner, and is replaced with the
// replacement first.
//
// proves DET-2, DET-6, DET-7, DET-17, HEAL-2, REC-15
func TestAgentStandsStill(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	ids := c.apply("web", 3)
	victim := ids[0]
	before := c.caughtUp()
	lease := c.h.alive(victim).Record

	c.signalAgent(victim, syscall.SIGSTOP)
	stopped := time.Now()
	c.awaitEntry("the report of "+victim+" being overdue", before,
		func(n noted) bool { return n.Rule == "DET-6" && n.Instance == victim })
	asked := time.Now()
	ends := asked.Add(c.leaseLeft(victim)) // rounded down: the lease ends no sooner
	if ends.Before(stopped.Add(leaseTTL - 3*interval)) {
		t.Fatalf("%s after its agent stopped, the lease has %s left: the story has not begun as it should",
			asked.Sub(stopped), ends.Sub(asked))
	}

	lost := c.awaitEntry("the loss of "+victim, before,
		func(n noted) bool { return n.Verdict == store.Lost && n.Instance == victim })
	t.Logf("lost %s after its lease could end (target: 1.5s after), %s after SIGSTOP",
		lost.At.Sub(ends).Round(time.Millisecond), lost.At.Sub(stopped).Round(time.Millisecond))
	switch {
	case lost.Rule != "DET-17" || len(lost.Evidence) == 0:
		t.Errorf("lost for the wrong reason: %s", lost)
	case lost.At.Before(ends):
		t.Errorf("lost %s before its lease could end: %s", ends.Sub(lost.At), lost)
	case lost.At.Sub(ends) > 20*time.Second:
		t.Errorf("lost only %s after its lease could end", lost.At.Sub(ends))
	}
	var states []string
	gone := store.Revision(0)
	for _, ch := range c.h.changesOf(store.KindAlive, before) {
		if ch.name != victim || gone != 0 {
			continue
		}
		if ch.Deleted {
			states, gone = append(states, "deleted"), ch.KV.Modified
			continue
		}
		v, err := store.Decode[store.Alive](ch.KV)
		if err != nil {
			t.Fatal(err)
		}
		if v.Record.Lease != lease.Lease || v.Record.Epoch != lease.Epoch {
			t.Errorf("another session meanwhile: %+v", v.Record)
		}
		states = append(states, string(v.Record.State))
	}
	if want := []string{"overdue", "deleted"}; !slices.Equal(states, want) {
		t.Errorf("the alive key went through %v, want %v", states, want)
	}
	if gone == 0 || lost.Revision < gone {
		t.Errorf("judged lost on revision %d, and the lease ended at %d", lost.Revision, gone)
	}

	order := c.awaitEntry("a replacement", before,
		func(n noted) bool { return n.Rule == "HEAL-2" && n.Instance == victim })
	var replacement string
	for _, v := range c.h.instances("web") {
		if v.Record.Replaces == victim {
			replacement = v.Record.ID
		}
	}
	if replacement == "" || !strings.Contains(order.What, replacement) || order.Revision < gone {
		t.Errorf("the replacement is %q, and the journal says %s", replacement, order)
	}
	healthy := c.awaitEntry("the replacement's health", order.rev,
		func(n noted) bool { return n.Instance == replacement && n.To == store.Running })
	removed := c.awaitEntry("the removal of "+victim, order.rev,
		func(n noted) bool { return n.Instance == victim && n.To == store.Deleting })
	if removed.Revision < healthy.rev {
		t.Errorf("removed on the cache of revision %d, and the replacement was healthy at %d", removed.Revision,
			healthy.rev)
	}
	c.awaitComplete("web", 3)
	if all := c.h.everRecorded(); len(all) != 4 {
		t.Errorf("one replacement was needed, and there were %v", all)
	}
	c.await("the end of "+victim, func() bool { return !c.h.instance(victim).Present() })
	if left := c.residentsOf(victim); len(left) > 0 {
		t.Errorf("of the machine that was removed there is still %v", left)
	}
}

// An agent that comes back while its replacement is coming up is kept, and the replacement is
// withdrawn.
//
// proves DET-15, HEAL-6, SAFE-4
func TestAgentReturns(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	ids := c.apply("web", 2)
	victim := ids[0]
	before := c.caughtUp()

	c.holdNewborn()
	c.signalAgent(victim, syscall.SIGSTOP)
	var replacement string
	c.await("a replacement whose agent is held", func() bool {
		for _, v := range c.h.instances("web") {
			if v.Record.Replaces == victim && c.held(v.Record.ID) {
				replacement = v.Record.ID
			}
		}
		return replacement != ""
	})
	c.signalAgent(victim, syscall.SIGCONT)
	withdrawn := c.awaitEntry("the replacement's withdrawal", before,
		func(n noted) bool { return n.Instance == replacement && n.To == store.Deleting })
	if withdrawn.Rule != "HEAL-6" || !strings.Contains(withdrawn.Why, victim) {
		t.Errorf("withdrawn for the wrong reason: %s", withdrawn)
	}
	c.await("the end of the replacement", func() bool { return !c.h.instance(replacement).Present() })
	c.awaitComplete("web", 2)
	if now := c.h.ids("web"); !slices.Equal(now, ids) {
		t.Errorf("there were %v, and now there are %v", ids, now)
	}
	if left := c.residentsOf(replacement); len(left) > 0 {
		t.Errorf("of the replacement there is still %v", left)
	}
	if removed := c.h.entries(before,
		func(n noted) bool { return n.Instance == victim && n.To != "" }); len(removed) > 0 {
		t.Errorf("the original did not stay as it was: %v", removed)
	}
}
