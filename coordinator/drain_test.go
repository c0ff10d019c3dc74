package coordinator_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// draining is a group whose instances run a hook before they go.
func (w *world) draining(size int, timeout time.Duration) store.Group {
	g := w.group("web", size)
	g.Drain = store.DrainSpec{Timeout: store.Duration(timeout), Hook: []string{"leave"}}
	return g
}

// drains lowers a group's size by one and returns the instance that drains, and since when.
func (w *world) drains(g store.Group) (string, time.Time) {
	w.t.Helper()
	g.Size--
	w.apply(g)
	id := ""
	w.until(10*time.Second, "one drains", func() bool {
		for _, in := range w.instances() {
			if in.Record.Phase == store.Draining {
				id = in.Record.ID
			}
		}
		return id != ""
	})
	return id, time.Now()
}

// removed waits until a machine is gone and returns how long after a time that was.
func (w *world) removed(id string, since time.Time) time.Duration {
	w.t.Helper()
	w.until(time.Hour, "the machine of "+id+" is removed",
		func() bool { return !slices.Contains(w.provider.Existing(), id) })
	return w.provider.Life(id).GoneAt.Sub(since)
}

// proves DRAIN-1
// proves HEAL-14
func TestDrainEnds(t *testing.T) {
	for name, c := range map[string]struct {
		hook        time.Duration // 0: it never ends
		then        func(w *world, id string)
		least, most time.Duration
	}{
		"with its hook":         {hook: 20 * time.Second, least: 20 * time.Second, most: 23 * time.Second},
		"when its time is over": {least: 2 * time.Minute, most: 2*time.Minute + 3*time.Second},
		"by an operator's word": {
			then: func(w *world, id string) {
				w.pass(30 * time.Second)
				w.order("r1", store.RequestDrained, id)
			},
			least: 30 * time.Second, most: 33 * time.Second,
		},
		"with its machine": {
			then: func(w *world, id string) {
				w.pass(30 * time.Second)
				w.provider.Crash(id, "exit 1")
			},
			least: 30 * time.Second, most: 42 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, quick, func(w *world) {
				w.start("one")
				w.setEveryone(mood{hook: c.hook})
				g := w.draining(2, 2*time.Minute)
				w.apply(g)
				w.up(2)
				id, since := w.drains(g)
				if c.then != nil {
					c.then(w, id)
				}
				if took := w.removed(id, since); took < c.least || took > c.most {
					t.Errorf("removed %s after it began to drain, want %s to %s", took, c.least, c.most)
				}
				if _, hooks := w.work(id).done(); len(hooks) != 1 {
					t.Errorf("hooks %q, want one", hooks)
				}
				w.until(time.Minute, "one is left", func() bool { return w.settled(1) })
			})
		})
	}
}

// proves DRAIN-1
func TestNothingIsWaitedForWithoutAHookOrTime(t *testing.T) {
	for name, change := range map[string]func(*store.Group){
		"no hook": func(g *store.Group) { g.Drain.Hook = nil },
		"no time": func(g *store.Group) { g.Drain.Timeout = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, quick, func(w *world) {
				w.start("one")
				g := w.draining(2, time.Minute)
				change(&g)
				w.apply(g)
				w.up(2)
				g.Size = 1
				w.apply(g)
				w.until(5*time.Second, "one is removed", func() bool { return len(w.provider.Existing()) == 1 })
			})
		})
	}
}

// A drain goes on where it was when the leader changes: its time is not given once more, and its
// hook does not run twice.
//
// proves DRAIN-2
// proves SAFE-13
func TestDrainSurvivesAChangeOfLeader(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		one := w.start("one")
		w.leads(time.Second, "one")
		w.start("two")
		g := w.draining(2, 5*time.Minute)
		w.apply(g)
		w.up(2)
		id, since := w.drains(g)
		w.pass(2 * time.Minute)
		one.kill()
		w.leads(10*time.Second, "two")
		if took := w.removed(id, since); took < 5*time.Minute || took > 5*time.Minute+3*time.Second {
			t.Errorf("removed %s after it began to drain, want 5m", took)
		}
		if _, hooks := w.work(id).done(); len(hooks) != 1 {
			t.Errorf("hooks %q, want one", hooks)
		}
	})
}

// An instance that drains because it was lost is taken back when its agent returns, and its
// replacement goes. One that drains for another reason is not.
//
// proves DET-15
// proves DET-7
func TestLostInstanceComesBackFromDraining(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.draining(2, 5*time.Minute))
		ids := w.up(2)
		w.setEveryone(mood{hook: time.Second})
		w.setMood(ids[0], mood{mute: true})
		w.until(3*time.Minute, "it drains", func() bool { return w.instance(ids[0]).Phase == store.Draining })
		if w.made() != 3 {
			t.Errorf("%d machines were made: the replacement comes first", w.made())
		}
		w.pass(30 * time.Second)
		w.setMood(ids[0], mood{})
		w.until(3*time.Minute, "it is back and its replacement is gone",
			func() bool { return w.settled(2) && slices.Equal(w.ids(), ids) && len(w.provider.Existing()) == 2 })
		back := false
		for _, e := range w.story() {
			back = back || e.Rule == "DET-15" && e.Instance == ids[0] && e.From == store.Draining &&
				e.To == store.Running
		}
		if !back {
			t.Error("the journal does not tell that it came back from draining")
		}
		if w.work(ids[0]).drain != "" {
			t.Error("its hook was not called off")
		}
	})
}

// proves DRAIN-1
func TestInstanceThatIsOrderedToDrainDoesNotComeBack(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.setEveryone(mood{hook: 30 * time.Second})
		w.apply(w.draining(2, 5*time.Minute))
		ids := w.up(2)
		w.order("r1", store.RequestDrain, ids[0])
		w.until(time.Minute, "it drains", func() bool { return w.instance(ids[0]).Phase == store.Draining })
		if took := w.removed(ids[0], time.Now()); took < 29*time.Second || took > 35*time.Second {
			t.Errorf("removed after %s", took)
		}
		w.until(time.Minute, "another is there",
			func() bool { return w.settled(2) && !slices.Contains(w.ids(), ids[0]) })
	})
}
