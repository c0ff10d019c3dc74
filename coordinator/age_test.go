//go:build !race || nightly

// What is decided here takes many days of virtual time. The race detector sees it at night alone;
// scripts/test.sh plays it without it by day.

package coordinator_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// lives are how old the machines that are gone became, and how many there were at most.
func (w *world) lives() (ages []time.Duration) {
	for _, l := range w.provider.Ledger() {
		if !l.GoneAt.IsZero() {
			ages = append(ages, l.GoneAt.Sub(l.MadeAt))
		}
	}
	slices.Sort(ages)
	return ages
}

// Instances that are eligible go one at a time, each up to a tenth before its time and with its
// replacement first, and only while the whole group is well.
//
// proves EXP-1
// proves EXP-2
func TestOldInstancesAreReplacedOneAtATime(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.group("web", 4)
		g.Expiry.EligibleAge = ptr(store.Duration(time.Hour))
		g.Budget.MaxExpansion = 3
		w.apply(g)
		ids := w.up(4)
		w.setMood(ids[0], mood{sick: true})
		g.Heal.Policy = store.HealNone
		w.apply(g)
		w.always(2*time.Hour, "none is replaced while one is not well",
			func() bool { return slices.Equal(w.ids(), ids) })
		w.setMood(ids[0], mood{})
		w.pass(time.Millisecond)
		least, most := 4, 4
		w.until(10*time.Minute, "all are replaced", func() bool {
			least, most = min(least, w.working()), max(most, len(w.ids())-w.phases(store.Deleting))
			return w.settled(4) && !slices.ContainsFunc(w.ids(),
				func(id string) bool { return slices.Contains(ids, id) })
		})
		if least < 4 || most != 5 {
			t.Errorf("%d at work at least, %d there at most: want 4 and 5", least, most)
		}
		from := time.Now()
		w.pass(50 * time.Minute)
		w.until(2*time.Hour, "the next go too", func() bool { return w.made() == 12 && w.settled(4) })
		if took := time.Since(from); took < 52*time.Minute {
			t.Errorf("they went %s later", took)
		}
		ages := w.lives()[:4] // those whose age alone counted
		if ages[0] < 54*time.Minute || ages[0] == ages[1] && ages[1] == ages[2] {
			t.Errorf("ages %v", ages)
		}
	})
}

// Forced age replaces even while others are not well, but never removes one before its replacement
// was tried.
//
// proves EXP-1
// proves EXP-2
func TestForcedAge(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.group("web", 2)
		g.Expiry.ForcedAge = ptr(store.Duration(time.Hour))
		g.Heal.Policy = store.HealNone
		w.apply(g)
		ids := w.up(2)
		w.setMood(ids[0], mood{sick: true})
		w.provider.Inject(fake.Fault{Call: fake.CallCreate, Err: provider.ErrCapacity})
		w.always(3*time.Hour, "none goes while there is no room for its replacement",
			func() bool { return len(w.provider.Existing()) == 2 })
		w.provider.Heal()
		w.until(30*time.Minute, "the one that is well goes, its replacement first", func() bool {
			return !slices.Contains(w.ids(), ids[1]) && w.phases(store.Running) == 2
		})
		if !slices.Contains(w.ids(), ids[0]) {
			t.Error("heal.policy none has healed")
		}
	})
}

// Machines that their provider may take away are recycled before it does, and not all at once.
//
// proves SPOT-3
func TestSpotMachinesAreRecycled(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.group("web", 6)
		g.Spot = store.SpotSpec{Enabled: true, MaxLifetime: store.Duration(2 * time.Hour)}
		w.apply(g)
		w.up(6)
		w.pass(2*time.Hour + time.Minute)
		ages := w.lives()
		if len(ages) != 6 || ages[0] < 110*time.Minute || ages[5] > 2*time.Hour+time.Minute ||
			ages[5]-ages[0] < time.Minute {
			t.Errorf("machines became %v old", ages)
		}
		w.up(6)
	})
}

// A slot that fails too often is given up, the group says so, and an operator's word has it tried
// again.
//
// proves FLAP-3
// proves REC-11
// proves FLAP-6
func TestSlotIsGivenUpAndRetried(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		one := w.start("one")
		w.leads(time.Second, "one")
		w.start("two")
		g := w.group("web", 2)
		g.Flap.GiveUpAfter, g.Flap.MaxDelay = 4, store.Duration(time.Minute)
		w.apply(g)
		ids := w.up(2)
		w.setMood(ids[1], mood{hook: time.Second})
		crash := func() {
			for _, in := range w.instances() {
				if in.Record.Slot == 0 && in.Record.Phase == store.Running {
					w.provider.Crash(in.Record.ID, "exit 1")
				}
			}
		}
		failures := func() int {
			for _, s := range records[store.Slot](w, store.KindSlots) {
				if s.Record.Number == 0 {
					return len(s.Record.Failures)
				}
			}
			return 0
		}
		w.until(30*time.Minute, "the slot is given up", func() bool {
			crash()
			if failures() == 3 && w.leader() == "one" {
				one.kill()
			}
			return w.status("web").Errored == 1
		})
		if n := failures(); n != 5 {
			t.Errorf("given up after %d failures, and 4 are allowed", n)
		}
		w.until(time.Minute, "the group says so", func() bool { return w.status("web").State == store.GroupErrored })
		made := w.made()
		w.always(2*time.Hour, "nothing more happens",
			func() bool { return w.made() == made && slices.Contains(w.ids(), ids[1]) })
		w.request("r1", store.Request{Kind: store.RequestRetry, Group: "web"})
		w.until(time.Minute, "it is tried again",
			func() bool { return w.settled(2) && w.status("web").State == store.GroupStarted })
	})
}
