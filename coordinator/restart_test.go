package coordinator_test

import (
	"cmp"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// restarting is a group that is healed by restarts, with little patience.
func (w *world) restarting(size int) store.Group {
	g := w.group("web", size)
	g.Heal.Policy = store.HealRestart
	g.Workload.Run = []string{"serve"}
	g.MaxChecking = store.Duration(20 * time.Second)
	g.Flap.Failures = 10
	return g
}

// phases counts the instances in some phases.
func (w *world) phases(of ...store.Phase) int {
	w.t.Helper()
	n := 0
	for _, in := range w.instances() {
		if slices.Contains(of, in.Record.Phase) {
			n++
		}
	}
	return n
}

func (w *world) instance(id string) store.Instance {
	w.t.Helper()
	for _, in := range w.instances() {
		if in.Record.ID == id {
			return in.Record
		}
	}
	return store.Instance{}
}

// story is the journal in the order in which it was written.
func (w *world) story() []store.JournalEntry {
	w.t.Helper()
	list := w.journal()
	slices.SortFunc(list, func(a, b store.Versioned[store.JournalEntry]) int {
		return cmp.Compare(a.Created, b.Created)
	})
	var out []store.JournalEntry
	for _, e := range list {
		out = append(out, e.Record)
	}
	return out
}

// What fails is restarted in its place, its workload first and then its machine; only what neither
// cures is replaced.
//
// proves HEAL-1
// proves DET-10
func TestWorkloadThenMachineThenReplacement(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.restarting(3))
		ids := w.up(3)
		w.setMood(ids[1], mood{sick: true})
		w.until(10*time.Minute, "it is replaced",
			func() bool { return w.settled(3) && !slices.Contains(w.ids(), ids[1]) })
		var steps []store.Phase
		for _, e := range w.story() {
			if e.Instance == ids[1] && e.To != "" {
				steps = append(steps, e.To)
			}
		}
		want := []store.Phase{
			store.Pending, store.Creating, store.Booting, store.Checking, store.Running,
			store.Stopping, store.Starting, store.Checking, store.Stopping, store.Starting, store.Checking,
			store.Deleting,
		}
		if !slices.Equal(steps, want) {
			t.Errorf("it went through %q, want %q", steps, want)
		}
		restarts, _ := w.work(ids[1]).done()
		if l := w.provider.Life(ids[1]); len(restarts) != 1 || l.Boots != 2 || l.Calls[fake.CallRestart] != 1 ||
			w.made() != 4 {
			t.Errorf("its workload was restarted %d times, its machine %d times; %d machines were made", len(restarts),
				l.Boots-1, w.made())
		}
		for _, s := range records[store.Slot](w, store.KindSlots) {
			if n := len(s.Record.Failures); n > 0 && (s.Record.Number != 1 || n != 3) {
				t.Errorf("slot %d has %d failures, want 3 in slot 1", s.Record.Number, n)
			}
		}
	})
}

// proves HEAL-1
// proves HEAL-6
func TestWorkloadThatARestartCuresIsLeftAtThat(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.restarting(2))
		ids := w.up(2)
		w.setMood(ids[0], mood{sick: true, cure: cureWorkload})
		w.until(time.Minute, "its workload is restarted",
			func() bool { restarts, _ := w.work(ids[0]).done(); return len(restarts) == 1 })
		w.until(time.Minute, "it is well", func() bool { return w.settled(2) })
		w.pass(10 * time.Minute)
		w.unchanged(ids)
		if r, _ := w.work(ids[0]).done(); len(r) != 1 || w.provider.Life(ids[0]).Boots != 1 ||
			w.instance(ids[0]).Restart != nil {
			t.Errorf("restarts %v, boots %d, record %+v", r, w.provider.Life(ids[0]).Boots, w.instance(ids[0]).Restart)
		}
	})
}

// However many fail at once, no more than max_unavailable are down for a restart, and those that
// recover before their turn are left alone.
//
// proves HEAL-3
// proves HEAL-11
func TestRestartsKeepToMaxUnavailable(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.restarting(10)
		g.Budget.MaxUnavailable, g.Budget.MaxExpansion = new(store.Amount(3)), 0
		g.Workload.Run = nil // the machine at once
		w.apply(g)
		ids := w.up(10)
		for _, id := range ids {
			w.setMood(id, mood{sick: true, cure: cureMachine})
		}
		most := 0
		down := func() int { return w.phases(store.Stopping, store.Starting, store.Checking) }
		w.until(time.Minute, "three are down", func() bool { most = max(most, down()); return down() == 3 })
		var spared []string
		for _, in := range w.instances() {
			if in.Record.Phase == store.Running {
				spared = append(spared, in.Record.ID)
				w.setMood(in.Record.ID, mood{})
			}
		}
		w.until(5*time.Minute, "all are well", func() bool { most = max(most, down()); return w.settled(10) })
		w.pass(time.Minute)
		w.unchanged(ids)
		if most != 3 || len(spared) != 7 {
			t.Errorf("%d were down at once, %d recovered before their turn", most, len(spared))
		}
		for _, id := range spared {
			if w.provider.Life(id).Boots != 1 {
				t.Errorf("%s was restarted though it had recovered", id)
			}
		}
	})
}

// proves DET-4
// proves HEAL-1
func TestDeadMachineIsRestartedIfItExists(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.restarting(2))
		ids := w.up(2)
		w.provider.Crash(ids[0], "exit 1")
		w.until(time.Minute, "it is restarted", func() bool { return w.provider.Life(ids[0]).Boots == 2 })
		w.until(time.Minute, "both run", func() bool { return w.settled(2) })
		w.pass(5 * time.Minute)
		w.unchanged(ids)
		if l := w.provider.Life(ids[0]); l.Boots != 2 || l.Overlapped {
			t.Errorf("booted %d times, calls overlapped: %t", l.Boots, l.Overlapped)
		}
		w.provider.Vanish(ids[1])
		w.until(2*time.Minute, "what does not exist is replaced",
			func() bool { return w.settled(2) && !slices.Contains(w.ids(), ids[1]) })
		if !slices.Contains(w.ids(), ids[0]) || w.made() != 3 {
			t.Errorf("instances %v, %d machines were made", w.ids(), w.made())
		}
	})
}

// A machine that does not come back from its restart is replaced.
//
// proves HEAL-1
func TestMachineThatDoesNotComeBackIsReplaced(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.restarting(2)
		g.RegistrationTimeout = store.Duration(time.Minute)
		w.apply(g)
		ids := w.up(2)
		w.provider.Inject(fake.Fault{Call: fake.CallRestart, Err: errors.New("the host does not answer")})
		w.provider.Crash(ids[0], "exit 1")
		w.until(5*time.Minute, "it is replaced",
			func() bool { return w.settled(2) && !slices.Contains(w.ids(), ids[0]) })
		if n := w.provider.Life(ids[0]).Calls[fake.CallRestart]; n < 2 {
			t.Errorf("its restart was tried %d times", n)
		}
	})
}

// A machine that comes up again runs what is wanted by then, though it went down before it was
// told.
//
// proves HEAL-1
// proves ROLL-2
func TestMachineComesUpWithWhatIsWantedByThen(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.restarting(2)
		w.apply(g)
		ids := w.up(2)
		down := ""
		for _, id := range ids {
			w.setMood(id, mood{ignores: true}) // it is told, and crashes before it has taken it in
		}
		w.edit("web", func(g *store.Group) { g.Workload.Run = []string{"serve", "--better"} })
		w.until(time.Minute, "one is told to restart its workload", func() bool {
			for _, id := range ids {
				if w.instance(id).Phase == store.Stopping {
					down = id
				}
			}
			return down != ""
		})
		w.provider.Crash(down, "exit 1")
		for _, id := range ids {
			w.setMood(id, mood{})
		}
		w.until(5*time.Minute, "both run what is wanted",
			func() bool { return w.settled(2) && w.status("web").Rollout == nil })
		w.unchanged(ids)
		for _, id := range ids {
			if s, n := w.work(id).runs(); !slices.Equal(s.run, []string{"serve", "--better"}) || n < 2 || n > 3 {
				t.Errorf("%s was started %d times, last with %q", id, n, s.run)
			}
		}
		if w.provider.Life(down).Boots != 2 {
			t.Errorf("%s booted %d times", down, w.provider.Life(down).Boots)
		}
	})
}

// A call that a dead leader had sent arrives long after the next leader's: it names a boot that has
// ended, and ends no other.
//
// proves SAFE-8
func TestLateRestartOfADeadLeaderEndsNoOtherBoot(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		first := w.start("first")
		w.leads(time.Second, "first")
		w.start("second")
		// A machine that boots again knows the replicas that there were when it was made.
		w.until(time.Second, "both serve", func() bool { return len(w.list(w.keys.Of(store.KindReplicas))) == 2 })
		g := w.restarting(2)
		g.Workload.Run = nil // the machine at once
		w.apply(g)
		ids := w.up(2)
		w.pass(10 * time.Second) // the provider has listed them, with their boots
		const late = 20 * time.Minute
		w.provider.Inject(fake.Fault{
			Call: fake.CallRestart, Times: 1, Hang: true,
			Effect: fake.EffectLate, Late: late,
		})
		w.setMood(ids[0], mood{sick: true, cure: cureMachine})
		w.until(time.Minute, "its restart is on its way",
			func() bool { return w.provider.Life(ids[0]).Calls[fake.CallRestart] == 1 })
		w.pass(quick.Call.To)
		first.kill()
		took := w.until(late/2, "the next leader has restarted it",
			func() bool { return w.provider.Life(ids[0]).Boots == 2 })
		took += w.until(late/4, "both are well", func() bool { return w.settled(2) })
		w.pass(late - took + time.Minute)
		w.unchanged(ids)
		if n := w.provider.Life(ids[0]).Boots; n != 2 {
			t.Errorf("it booted %d times, the last time for a leader long dead", n)
		}
	})
}

func restartedInPlace(w *world, c *crash) {
	c.boots = 2 // a call that the dead leader had sent may arrive after the new leader's, and names the boot before
	g := w.restarting(2)
	w.apply(g)
	ids := w.up(2)
	w.setMood(ids[0], mood{sick: true, cure: cureMachine})
	w.until(10*time.Minute, "it was restarted", func() bool { return w.provider.Life(ids[0]).Boots > 1 })
	w.until(10*time.Minute, "both are well", func() bool { return w.settled(2) })
	if now := w.ids(); !slices.Equal(now, ids) || w.made() != 2 {
		w.t.Errorf("instances were %v and are %v", ids, now)
	}
	if restarts, _ := w.work(ids[0]).done(); len(restarts) != 1 {
		w.t.Errorf("its workload was restarted by %q, want once", restarts)
	}
	if n := w.provider.Life(ids[1]).Boots; n != 1 {
		w.t.Errorf("the other booted %d times", n)
	}
}
