package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// asks has the group's agents asked for a file that is there while the workload is busy.
func (w *world) asks(change ...func(*store.Group)) {
	w.edit(func(g *store.Group) {
		g.Busy.File, g.Size = "/run/busy", 2
		for _, c := range change {
			c(g)
		}
	})
}

// isBusy has an agent say whether its workload is busy.
func (w *world) isBusy(id string, busy bool) {
	w.agents[id].busy = &busy
	w.report(id)
}

// Planned work takes idle instances first; what is not known counts as busy.
//
// proves BUSY-1
func TestTheIdleGoFirst(t *testing.T) {
	hour := store.Duration(time.Hour)
	remade := func(r *store.Instance) { r.Template, r.Spec.Template.InstanceType = "t0", "small" }
	for _, c := range []struct {
		name   string
		spec   func(*store.Group)
		change func(*store.Instance)
		want   string
	}{
		{"scale-down", func(g *store.Group) { g.Size = 2 }, func(*store.Instance) {}, "c"},
		{"a roll", func(g *store.Group) { g.Size = 3 }, remade, "+2"},
		{"expiry", func(g *store.Group) { g.Size, g.Expiry.EligibleAge = 3, &hour }, old(2 * time.Hour), "+2"},
		{
			"evening the zones", func(g *store.Group) { g.Size, g.Spread = 3, store.SpreadEven }, func(*store.Instance) {},
			"+2",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.asks(c.spec)
			for i, id := range []string{"a", "b", "c"} {
				w.place(id, i, store.Running, c.change)
			}
			w.isBusy("a", true) // nothing is known of b
			w.isBusy("c", false)
			w.pass(0)
			w.planIsSound()
			got := w.briefly()
			for _, a := range Compute(w.snapshot(), w.now).Actions {
				if a.To == store.Draining {
					got += a.Instance
				}
			}
			if len(got) < len(c.want) || got[len(got)-len(c.want):] != c.want {
				t.Errorf("planned %q, want %q to go", got, c.want)
			}
		})
	}
}

// An instance that was chosen by planned work drains until it is idle, for busy.timeout at most,
// and not before its agent can know that it takes no new work. Failures and notices end the wait.
//
// proves BUSY-1
func TestTheBusyGoWhenTheyAreIdle(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*world)
		// after which it goes
		after time.Duration
	}{
		{"it is idle", func(w *world) { w.isBusy("b", false) }, idleAfter},
		{"it becomes idle", func(w *world) { w.pass(10 * time.Minute); w.step(); w.isBusy("b", false) }, 10 * time.Minute},
		{"it stays busy", func(*world) {}, time.Hour},
		{"it fails", func(w *world) { w.turn("b", false) }, 0},
		{"a notice", func(w *world) { w.change("b", spotted) }, 0},
		{"an operator says that it is done", func(w *world) {
			w.order(store.RequestDrained, "b")
			w.step()
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.asks()
			for i, id := range []string{"a", "b", "c"} {
				kept := protected
				if id == "b" {
					kept = func(*store.Instance) {}
				}
				w.place(id, i, store.Running, kept)
				w.isBusy(id, true)
			}
			w.pass(0)
			w.step()
			if p := w.instance("b").Record.Phase; p != store.Draining {
				t.Fatalf("it is %s", p)
			}
			begun := w.now
			c.do(w)
			for w.instance("b").Record.Phase == store.Draining && w.now.Sub(begun) <= 2*time.Hour {
				blocked := w.blockedBy()
				if p, _ := w.step(); w.instance("b").Record.Phase != store.Draining {
					break
				} else if len(blocked) == 0 || blocked[0].Rule != "BUSY-1" {
					t.Fatalf("it waits for %+v", blocked)
				} else {
					w.pass(max(time.Millisecond, min(time.Minute, p.Wake.Sub(w.now))))
				}
			}
			if took := w.now.Sub(begun); took != c.after {
				t.Errorf("it goes after %s, want %s: %+v", took, c.after, w.instance("b").Record.Last)
			}
		})
	}
}

// What an agent said before its stream went silent says nothing of now: unknown counts as busy.
//
// proves BUSY-1
func TestSilenceIsNotIdle(t *testing.T) {
	for _, state := range []store.StreamState{store.StreamOpen, store.StreamOverdue, store.StreamLost} {
		w := newTestWorld(t)
		w.asks()
		w.place("a", 0, store.Running)
		w.isBusy("a", false)
		w.setState("a", state)
		d := w.drafted()
		if idle := d.isIdle(d.find("a")); idle != (state == store.StreamOpen) {
			t.Errorf("stream %s: idle %t", state, idle)
		}
	}
}

// What heals waits for no workload: an instance that fails is replaced though it was busy, and the
// room that draining ones take is not missing.
//
// proves BUSY-1
func TestHealingDoesNotWaitForTheBusy(t *testing.T) {
	w := newTestWorld(t)
	w.asks()
	busy := func(r *store.Instance) {
		r.Drain = &store.Drain{
			Token: "t", Rule: "ROLL-1", Timer: w.timerOf(0), Busy: new(w.timerOf(time.Hour)),
		}
	}
	w.place("a", 0, store.Running)
	w.place("b", 1, store.Running)
	w.place("c", 0, store.Draining, busy) // it uses up max_expansion
	w.isBusy("a", true)
	w.isBusy("b", true)
	w.isBusy("c", true)
	w.turn("b", false)
	w.pass(0)
	if got := w.briefly(); got != "HEAL-2 +1" {
		t.Errorf("planned %q: %+v", got, w.blockedBy())
	}
	w.edit(func(g *store.Group) { g.Budget.MaxExpansion, g.Budget.MaxUnavailable = 0, new(store.Amount(1)) })
	w.edit(func(g *store.Group) { g.Budget.MaxDeleting = 1 })
	if got := w.briefly(); got != "HEAL-2 -b" {
		t.Errorf("planned %q: %+v", got, w.blockedBy())
	}
	// planned work waits for max_deleting, whatever uses it
	w.turn("b", true)
	w.edit(func(g *store.Group) { g.Size = 1 })
	if !slices.ContainsFunc(w.blockedBy(), func(b store.Blocked) bool { return b.Kind == store.BlockedByMaxDeleting }) {
		t.Errorf("planned %q: %+v", w.briefly(), w.blockedBy())
	}
}

// A roll waits for the busy, also with a failed instance that nothing heals: what only a new
// template may help is planned work, and max_deleting holds for it.
//
// proves BUSY-1, HEAL-7, ROLL-1, ROLL-2
func TestARollOfTheFailedWaitsForTheBusy(t *testing.T) {
	for _, c := range []struct {
		name string
		was  func(*store.Instance)
		rule string
		to   store.Phase
	}{
		{"replaced", func(r *store.Instance) { r.Spec.Template.InstanceType = "small" }, "ROLL-1", store.Deleting},
		{"restarted", func(r *store.Instance) { r.Spec.Workload.Run = []string{"./old"} }, "ROLL-2", store.Stopping},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.asks(func(g *store.Group) {
				g.Heal.Policy, g.Workload.Run = store.HealNone, []string{"./new"}
				g.Budget = store.Budget{MaxUnavailable: new(store.Amount(1)), MaxDeleting: 1}
			})
			w.place("a", 0, store.Running)
			w.place("b", 1, store.Running, outdated, func(r *store.Instance) {
				r.Spec.Workload.Run = []string{"./new"}
				c.was(r)
			})
			w.place("c", 0, store.Draining, func(r *store.Instance) {
				r.Drain = &store.Drain{Token: "t", Rule: "ROLL-1", Timer: w.timerOf(0), Busy: new(w.timerOf(time.Hour))}
			})
			w.isBusy("c", true)
			w.turn("b", false)
			w.pass(0)
			w.planIsSound()
			begun := func() bool {
				return slices.ContainsFunc(Compute(w.snapshot(), w.now).Actions, func(a Action) bool {
					return a.Instance == "b" && a.Rule == c.rule && a.To == c.to
				})
			}
			if begun() || !slices.ContainsFunc(w.blockedBy(), func(b store.Blocked) bool {
				return b.Rule == "HEAL-7" && b.Instance == "b" && b.Kind == store.BlockedByMaxDeleting
			}) {
				t.Errorf("begun while c is busy: %t, and %+v", begun(), w.blockedBy())
			}
			w.edit(func(g *store.Group) { g.Budget.MaxDeleting = 2 })
			if !begun() {
				t.Errorf("with room in max_deleting it waits for %+v", w.blockedBy())
			}
		})
	}
}

// A group that shrinks, and one on demand that is too old, wait for what the busy use of
// max_deleting, also with an instance that has failed: none takes its place, so nothing is healed.
// An order or an evacuation does not wait, nor does the room that a failed instance needs.
//
// proves BUSY-1, DRAIN-3, HEAL-7, HEAL-8, HEAL-9
func TestWhoUsesTheBudgetOfTheBusy(t *testing.T) {
	onDemand := func(r *store.Instance) { r.Managed, r.Slot = false, -1 }
	for _, c := range []struct {
		name  string
		do    func(*world)
		does  string // once it has room
		waits bool
	}{
		{"a failed one is too many", func(w *world) {
			w.place("b", 1, store.Running)
			w.turn("b", false)
		}, "HEAL-9 b", true},
		{"one too many was ordered to be replaced", func(w *world) {
			w.place("b", 1, store.Running, func(r *store.Instance) { r.Condemned = &store.Condemned{By: "ada"} })
		}, "HEAL-9 b", false},
		{"the zone of one too many is evacuated", func(w *world) {
			w.place("b", 1, store.Running, zone("b"))
			w.editShard(func(s *store.Shard) { s.Evacuated = map[string]store.Evacuation{"b": {By: "ada"}} })
		}, "HEAL-9 b", false},
		{"its agent's host is evacuated, and another that has failed goes first", func(w *world) {
			w.place("f", 2, store.Running)
			w.turn("f", false)
			w.place("b", 1, store.Running, func(r *store.Instance) { r.Doomed = &store.Doom{Rule: "DRAIN-3"} })
		}, "HEAL-9 b", false},
		{"a failed one on demand is too old", func(w *world) {
			w.edit(func(g *store.Group) { g.OnDemandAge = store.Duration(time.Hour) })
			w.place("b", -1, store.Running, onDemand, old(2*time.Hour))
			w.turn("b", false)
		}, "REC-2 b", true},
		{"one on demand was ordered to go", func(w *world) {
			w.place("b", -1, store.Running, onDemand, func(r *store.Instance) { r.Condemned = &store.Condemned{By: "ada"} })
		}, "REC-16 b", false},
		{"an unready one of a roll is in the way of healing", func(w *world) {
			w.edit(func(g *store.Group) { g.Size, g.Budget.MaxExpansion, g.Budget.MaxUnavailable = 2, 1, nil })
			w.place("d", 1, store.Running, outdated)
			w.place("b", 1, store.Booting, func(r *store.Instance) { r.Replaces, r.Purpose = "d", store.PurposeRoll })
			w.turn("a", false)
		}, "HEAL-8 b", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.asks(func(g *store.Group) { g.Size, g.Budget.MaxDeleting = 1, 1 })
			w.place("a", 0, store.Running)
			w.place("c", 0, store.Draining, func(r *store.Instance) {
				r.Drain = &store.Drain{Token: "t", Rule: "ROLL-1", Timer: w.timerOf(0), Busy: new(w.timerOf(time.Hour))}
			})
			w.isBusy("c", true)
			c.do(w)
			w.pass(0)
			if c.waits { // what is sound counts the busy as well
				w.planIsSound()
			}
			goes := func() bool {
				return slices.ContainsFunc(Compute(w.snapshot(), w.now).Actions, func(a Action) bool {
					return a.Rule+" "+a.Instance == c.does && a.To == store.Deleting
				})
			}
			blocked := slices.ContainsFunc(w.blockedBy(), func(b store.Blocked) bool {
				return b.Rule == "HEAL-7" && b.Instance == "b" && b.Kind == store.BlockedByMaxDeleting
			})
			if goes() == c.waits || blocked != c.waits {
				t.Errorf("planned %q, and blocked by %+v", w.briefly(), w.blockedBy())
			}
			w.edit(func(g *store.Group) { g.Budget.MaxDeleting = 2 })
			if !goes() {
				t.Errorf("with room in max_deleting: planned %q, and blocked by %+v", w.briefly(), w.blockedBy())
			}
		})
	}
}

func (w *world) timerOf(d time.Duration) store.Timer {
	return store.Timer{Start: w.now, For: store.Duration(d)}
}

// An instance that is restarted in its place, as planned, is first waited for until it is idle.
//
// proves BUSY-1
func TestRestartsWaitForTheBusy(t *testing.T) {
	for _, c := range []struct {
		name  string
		idle  time.Duration // after so long
		after time.Duration
	}{
		{"idle", 0, 0}, {"idle later", 10 * time.Minute, 10 * time.Minute}, {"never idle", 3 * time.Hour, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.asks(func(g *store.Group) { g.Size, g.Workload.Run = 1, []string{"./new"} })
			w.place("a", 0, store.Running, func(r *store.Instance) {
				r.Template, r.Spec.Workload.Run = "t0", []string{"./old"}
			})
			w.isBusy("a", true)
			begun := w.now
			for w.instance("a").Record.Phase == store.Running && w.now.Sub(begun) < 2*time.Hour {
				if w.now.Sub(begun) >= c.idle {
					w.isBusy("a", false)
				}
				if w.step(); w.instance("a").Record.Phase == store.Running {
					w.pass(time.Minute)
				}
			}
			if took := w.now.Sub(begun); took != c.after {
				t.Errorf("it is restarted after %s, want %s: %+v", took, c.after, w.instance("a").Record)
			}
			if w.instance("a").Record.Awaits != nil {
				t.Error("it still waits to be restarted")
			}
		})
	}
}
