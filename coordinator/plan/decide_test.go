package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// proves HEAL-2, HEAL-3, HEAL-5, HEAL-6, HEAL-7, HEAL-13, DET-4, DET-15, REC-4, REC-13, REC-16
func TestHealAndCount(t *testing.T) {
	size := func(n int) func(*store.Group) { return func(g *store.Group) { g.Size = n } }
	for _, c := range []struct {
		name  string
		spec  func(*store.Group)
		world func(*world)
		want  string
	}{
		{"all is well", size(1), func(w *world) { w.place("a", 0, store.Running) }, ""},
		{"one that failed and one that works, both to go: the one that works is waited for", func(g *store.Group) {
			g.Size, g.Rollout.StartupDuration = 1, store.Duration(time.Minute)
		}, func(w *world) {
			w.place("a", 0, store.Running, condemned(false))
			w.place("b", 0, store.Running, replaces("a"), condemned(false))
			w.turn("a", false)
			w.see("a", func(in *Instance) { in.PhaseStart = w.now.Add(-time.Hour) })
		}, ""},
		{"one that is cut off and one that works, both to go: the one that works stays", size(1), func(w *world) {
			w.place("a", 0, store.Running, condemned(false))
			w.place("b", 0, store.Running, replaces("a"), condemned(false))
			w.silence("a", true)
		}, "REC-16 -a"},
		{"two failed in one slot: the one that booted stays", size(1), func(w *world) {
			w.place("a", 0, store.Running)
			w.place("b", 0, store.Checking, replaces("a"))
			w.turn("a", false)
			w.stuck("b")
		}, "HEAL-13 -b"},
		{"two failed in one slot, neither booted: the oldest stays", size(1), func(w *world) {
			w.place("a", 0, store.Checking)
			w.place("b", 0, store.Booting, replaces("a"))
			w.stuck("a")
			w.stuck("b")
		}, "HEAL-13 -b"},
		{"three failed in one slot: one goes at a time, as each is counted", size(1), func(w *world) {
			w.place("a", 0, store.Checking)
			w.place("b", 0, store.Running)
			w.place("c", 0, store.Checking)
			w.stuck("a")
			w.turn("b", false)
			w.stuck("c")
		}, "HEAL-13 -a"},
		{"three in one slot, two healthy: the oldest of these stays", size(1), func(w *world) {
			w.place("a", 0, store.Running)
			w.place("b", 0, store.Running)
			w.place("c", 0, store.Running)
			w.turn("a", false)
		}, "HEAL-2 -a, HEAL-6 -c"},
		{"original outdated, both healthy: the replacement stays", size(1), func(w *world) {
			w.place("a", 0, store.Running, outdated)
			w.place("b", 0, store.Running, replaces("a"))
		}, "ROLL-1 -a"},
		{"a suspect is left alone beside its healthy replacement", size(1), func(w *world) {
			w.place("a", 0, store.Running)
			w.place("b", 0, store.Running, replaces("a"))
			w.silence("a", true)
		}, ""},
		{"a suspect replacement does not take the place", size(1), func(w *world) {
			w.place("a", 0, store.Running)
			w.place("b", 0, store.Running, replaces("a"))
			w.turn("a", false)
			w.silence("b", true)
		}, ""},
		{"dead original, unfinished replacement: it is buried, none is made", size(1), func(w *world) {
			w.place("a", 0, store.Running)
			w.place("b", 0, store.Booting, replaces("a"))
			w.kill("a")
		}, "DET-4 -a"},
		{"dead replacement, unhealthy original: the next waits for the next cache", size(1), func(w *world) {
			w.place("a", 0, store.Running)
			w.place("b", 0, store.Booting, replaces("a"))
			w.turn("a", false)
			w.kill("b")
		}, "DET-4 -b"},
		{"both dead: one replacement", size(1), func(w *world) {
			w.place("a", 0, store.Running)
			w.place("b", 0, store.Running, replaces("a"))
			w.kill("a")
			w.kill("b")
		}, "DET-4 -a, DET-4 +0"},
		{"dead and not wanted: none in its place", size(1), func(w *world) {
			w.place("a", 0, store.Running)
			w.place("b", 1, store.Running)
			w.kill("a")
		}, "DET-4 -a"},
		{
			"the dead wait for no budget",
			func(g *store.Group) { g.Size, g.Budget.MaxExpansion, g.Budget.MaxDeleting = 2, 0, 1 }, func(w *world) {
				w.place("a", 0, store.Running)
				w.place("b", 1, store.Running)
				w.kill("a")
				w.kill("b")
			}, "DET-4 -a, DET-4 +0, DET-4 -b, DET-4 +1",
		},
		{
			"both budgets 0: the unhealthy wait", func(g *store.Group) { g.Size, g.Budget.MaxExpansion = 1, 0 },
			func(w *world) {
				w.place("a", 0, store.Running)
				w.turn("a", false)
			}, "",
		},
		{
			"no expansion: removed first, as many as may be unavailable",
			func(g *store.Group) {
				g.Size, g.Budget.MaxExpansion, g.Budget.MaxUnavailable = 3, 0, new(store.Amount(1))
			},
			func(w *world) {
				for i, id := range []string{"a", "b", "c"} {
					w.place(id, i, store.Running)
					w.turn(id, false)
				}
			}, "HEAL-2 -a",
		}, // its slot is filled when it is gone (REC-18)
		{
			"one that never booted takes none down",
			func(g *store.Group) {
				g.Size, g.Budget.MaxExpansion, g.Budget.MaxUnavailable = 3, 0, new(store.Amount(1))
			},
			func(w *world) {
				for i, id := range []string{"a", "b"} {
					w.place(id, i, store.Booting)
					w.stuck(id)
				}
				w.place("c", 2, store.Running)
				w.turn("c", false)
			}, "HEAL-2 -a, HEAL-2 -b",
		},
		{
			"max_creating holds back what would be made",
			func(g *store.Group) { g.Size, g.Budget.MaxExpansion, g.Budget.MaxCreating = 4, 3, 2 }, func(w *world) {
				w.place("a", 0, store.Running)
				w.place("b", 1, store.Running)
				w.place("c", 2, store.Booting)
				w.turn("a", false)
				w.turn("b", false)
			}, "HEAL-2 +0",
		},
		{
			"max_creating is not used by one that failed to come up",
			func(g *store.Group) { g.Size, g.Budget.MaxCreating = 1, 1 }, func(w *world) {
				w.place("a", 0, store.Booting)
				w.stuck("a")
			}, "HEAL-2 +0",
		},
		{
			"max_creating is not used by a restart that is yet to be carried out",
			func(g *store.Group) { g.Size, g.Budget.MaxExpansion, g.Budget.MaxCreating = 3, 1, 2 }, func(w *world) {
				w.place("a", 0, store.Running)
				w.place("b", 1, store.Stopping)
				w.place("c", 2, store.Starting)
				w.turn("a", false)
			}, "HEAL-2 +0",
		},
		{
			"max_creating is used by a restart that was carried out",
			func(g *store.Group) { g.Size, g.Budget.MaxExpansion, g.Budget.MaxCreating = 3, 1, 2 }, func(w *world) {
				w.place("a", 0, store.Running)
				w.place("b", 1, store.Starting)
				w.place("c", 2, store.Starting)
				w.turn("a", false)
			}, "",
		},
		{
			"max_deleting holds back what would be removed", func(g *store.Group) { g.Size, g.Budget.MaxDeleting = 0, 2 },
			func(w *world) {
				for i, id := range []string{"a", "b", "c"} {
					w.place(id, i, store.Running)
				}
				w.place("d", 3, store.Deleting)
			}, "HEAL-9 -a",
		},
		{"failed first, then who is not working yet, then the oldest", size(1), func(w *world) {
			w.place("a", 0, store.Running)
			w.place("b", 1, store.Booting)
			w.place("c", 2, store.Running)
			w.place("d", 3, store.Running)
			w.turn("d", false)
		}, "HEAL-9 -d, HEAL-9 -b, HEAL-9 -a"},
		{"the condemned goes first when there are too many", size(2), func(w *world) {
			w.place("a", 0, store.Running)
			w.place("b", 1, store.Running)
			w.place("c", 2, store.Running, condemned(false))
			w.place("d", 2, store.Booting, replaces("c"))
		}, "HEAL-9 -c, HEAL-9 -d"},
		{"a slot whose replacement works already is a working one", size(1), func(w *world) {
			w.place("a", 0, store.Running)
			w.place("b", 1, store.Running)
			w.place("c", 1, store.Running, replaces("b"))
			w.turn("b", false)
		}, "HEAL-9 -a, HEAL-2 -b"},
		{"zones stay even", size(2), func(w *world) {
			w.place("a", 0, store.Running, zone("b"))
			w.place("b", 1, store.Running)
			w.place("c", 2, store.Running)
		}, "HEAL-9 -b"},
		{"the protected stay", size(1), func(w *world) {
			w.place("a", 0, store.Running, protected)
			w.place("b", 1, store.Running)
			w.place("c", 2, store.Running, protected)
		}, "HEAL-9 -b"},
		{"a healthy one waits for a protected one's healing", size(1), func(w *world) {
			w.place("a", 0, store.Running, protected)
			w.place("b", 0, store.Booting, replaces("a"))
			w.place("c", 1, store.Running)
			w.turn("a", false)
		}, ""},
		{
			"scale-down and healing use no slot both", func(g *store.Group) { g.Size, g.Budget.MaxExpansion = 2, 1 },
			func(w *world) {
				for i, id := range []string{"a", "b", "c"} {
					w.place(id, i, store.Running)
				}
				w.turn("a", false)
				w.turn("b", false)
			}, "HEAL-9 -a",
		}, // b's replacement waits until a's room is free for sure
		{
			"a removal of this plan gives no room to its creations",
			func(g *store.Group) { g.Size, g.Budget.MaxExpansion = 1, 1 }, func(w *world) {
				w.place("a", 0, store.Running)
				w.place("b", 1, store.Running)
				w.turn("a", false)
				w.turn("b", false)
			}, "HEAL-9 -a",
		},
		{
			"ordered to go now: removed first, whatever the budgets",
			func(g *store.Group) { g.Size, g.Budget.MaxExpansion = 1, 5 }, func(w *world) {
				w.place("a", 0, store.Running, condemned(true))
			}, "REC-16 -a, REC-16 +0",
		},
		{"ordered to go now, its replacement is under way", size(1), func(w *world) {
			w.place("a", 0, store.Running, condemned(true))
			w.place("b", 0, store.Booting, replaces("a"))
		}, "REC-16 -a"},
		{"ordered to be replaced: the replacement first", size(1), func(w *world) {
			w.place("a", 0, store.Running, condemned(false))
		}, "REC-16 +0"},
		{
			"policy none: the failed stay", func(g *store.Group) { g.Size, g.Heal.Policy = 2, store.HealNone },
			func(w *world) {
				w.place("a", 0, store.Running)
				w.place("b", 1, store.Running)
				w.turn("a", false)
				w.kill("b")
			}, "",
		},
		{
			"policy none: orders are carried out, on the dead too",
			func(g *store.Group) { g.Size, g.Heal.Policy, g.Budget.MaxExpansion = 2, store.HealNone, 2 },
			func(w *world) {
				w.place("a", 0, store.Running, condemned(false))
				w.place("b", 1, store.Running, condemned(false))
				w.kill("b")
			}, "DET-4 -b, DET-4 +1, REC-16 +0",
		},
		{
			"policy none: of two dead the surplus one goes, none is made",
			func(g *store.Group) { g.Size, g.Heal.Policy = 2, store.HealNone }, func(w *world) {
				w.place("a", 0, store.Running)
				w.place("b", 1, store.Running)
				w.place("c", 2, store.Running)
				w.kill("a")
				w.kill("b")
			}, "DET-4 -a",
		},
		{"paused: nothing", func(g *store.Group) { g.Size, g.Paused = 3, true }, func(w *world) {
			w.place("a", 0, store.Running)
			w.place("b", 1, store.Running, condemned(true))
			w.kill("a")
		}, ""},
		{
			"group deleted: whatever phase they are in", func(g *store.Group) { g.Size, g.Deleting = 3, true },
			func(w *world) {
				w.place("a", 0, store.Pending)
				w.place("b", 1, store.Creating)
				w.place("c", 2, store.Running, protected)
				w.place("d", 3, store.Deleting)
			}, "REC-7 -a, REC-7 -b, REC-7 -c",
		},
		{"doomed and protected from healing, its replacement works: it goes", size(1), func(w *world) {
			w.place("a", 0, store.Running, func(r *store.Instance) {
				r.Protected, r.Doomed = store.ProtectHeal, &store.Doom{Rule: "DRAIN-3", Why: "evacuated"}
			})
			w.place("b", 0, store.Running, replaces("a"))
		}, "DRAIN-3 -a"},
		{"ordered to go now, its slot waits: none is made", size(1), func(w *world) {
			w.place("a", 0, store.Running, condemned(true))
			w.waits(0)
		}, "REC-16 -a"},
		{"ordered to be replaced, its slot waits: it waits, too", size(1), func(w *world) {
			w.place("a", 0, store.Running, condemned(false))
			w.waits(0)
		}, ""},
		{"the original comes up, its replacement never registered: it goes", size(1), func(w *world) {
			w.place("a", 0, store.Checking)
			w.turn("a", false)
			w.place("b", 0, store.Booting, replaces("a"))
			w.stuck("b")
		}, "HEAL-13 -b"},
		{"the original comes up, its replacement has booted and failed: it stays", size(1), func(w *world) {
			w.place("a", 0, store.Checking)
			w.turn("a", false)
			w.place("b", 0, store.Running, replaces("a"))
			w.turn("b", false)
		}, ""},
		{"two failed in one slot, one has crashed, one never got healthy: the one that ran stays", size(1), func(w *world) {
			w.place("a", 0, store.Checking)
			w.stuck("a")
			w.place("b", 0, store.Running, replaces("a"))
			w.exit("b", 1)
		}, "HEAL-13 -a"},
		{"a notice in a surplus: none is made", func(g *store.Group) { g.Size, g.Drain.Timeout = 1, 0 }, func(w *world) {
			w.place("a", 0, store.Running)
			w.place("b", 1, store.Running, spotted)
		}, "SPOT-2 -b"},
		{"a notice, and one zone", func(g *store.Group) { g.Size, g.Drain.Timeout = 1, 0 }, func(w *world) {
			w.zones = []string{"a"}
			w.place("a", 0, store.Running, spotted)
		}, "SPOT-2 -a, SPOT-2 +0"},
		{"a notice, and no zone", func(g *store.Group) { g.Size, g.Drain.Timeout = 1, 0 }, func(w *world) {
			w.place("a", 0, store.Running, spotted)
			w.evacuate("a", "b")
		}, "SPOT-2 -a"},
		{"the provider refuses a creation", size(1), func(w *world) {
			w.place("a", 0, store.Creating)
			w.see("a", func(in *Instance) { in.Calls = Calls{Refused: true, Problem: "no such image"} })
		}, "HEAL-13 -a"},
		{"an instance on demand has finished, and was ordered to go", size(0), func(w *world) {
			w.place("x", -1, store.Finished, condemned(true))
		}, "REC-16 -x"},
		{"beside a finished task none is needed", size(1), func(w *world) {
			w.place("a", 0, store.Running)
			w.place("b", 0, store.Finished, replaces("a"))
		}, "REC-12 -a"},
		{
			"an uneven spread: the oldest of the fullest zone moves",
			func(g *store.Group) { g.Size, g.Spread = 4, store.SpreadEven }, func(w *world) {
				w.place("a", 0, store.Running, zone("b"))
				for i, id := range []string{"b", "c", "d"} {
					w.place(id, i+1, store.Running)
				}
			}, "REC-17 +1",
		},
		{
			"slots without a record are healed in order of number, too",
			func(g *store.Group) { g.Size, g.Budget.MaxExpansion = 3, 1 }, func(w *world) {
				for i, id := range []string{"a", "b", "c"} {
					w.place(id, i, store.Running)
					w.turn(id, false)
				}
				w.drop(w.keys.Slot(w.group, 0))
			}, "HEAL-2 +0",
		},
		{"too few: the lowest free numbers", size(4), func(w *world) {
			w.place("a", 1, store.Running)
			w.place("b", 3, store.Running)
			w.place("c", 0, store.Deleting)
		}, "REC-3 +0, REC-3 +2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(c.spec)
			c.world(w)
			w.pass(0) // a list
			w.planIsSound()
			if got := w.briefly(); got != c.want {
				t.Errorf("planned %q, want %q", got, c.want)
			}
		})
	}
}

// An order that changes a slot and the end of its group do not meet in one plan: the second would
// fail on the first.
//
// proves REC-7, REC-16
func TestAGroupEndsAfterTheOrdersToItsSlots(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size, g.Deleting = 1, true })
	w.put(w.keys.Slot(w.group, 0), store.Slot{Schema: store.Schema, Group: w.group, Flapping: 2})
	w.put(w.keys.Request("r1"), store.Request{
		Schema: store.Schema, ID: "r1", Kind: store.RequestRetry, Group: w.group,
		By: "op", At: w.now,
	})
	w.pass(0)
	w.planIsSound()
	done := func() (what []string) {
		s := w.snapshot()
		for _, a := range Compute(s, w.now).Actions {
			if a.Rule == "REC-16" || a.Rule == "REC-7" {
				what = append(what, a.What())
			}
		}
		return what
	}
	if got := done(); !slices.Equal(got, []string{"1 slot to start over"}) {
		t.Fatalf("planned %q first, want the order alone", got)
	}
	w.put(w.keys.Slot(w.group, 0), store.Slot{Schema: store.Schema, Group: w.group})
	w.drop(w.keys.Request("r1"))
	if got := done(); !slices.Equal(got, []string{"group deleted"}) {
		t.Fatalf("planned %q then, want the end of the group", got)
	}
}

// proves SAFE-4
func TestEveryKeyOfTheEvidenceIsCompared(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size, g.Budget.MaxExpansion = 4, 4 })
	w.place("dead", 0, store.Running)
	w.place("unhealthy", 1, store.Running)
	w.place("stuck", 2, store.Checking)
	w.place("lost", 3, store.Running)
	w.place("extra", 4, store.Running)
	w.place("left", 5, store.Running)
	w.place("keeps", 5, store.Running, replaces("left"))
	w.kill("dead")
	w.turn("unhealthy", false)
	w.turn("left", false)
	w.silence("lost", false)
	for range 3 {
		w.pass(10 * time.Second) // overdue, then its lease ends, then that is confirmed
	}
	w.stuck("stuck")
	must := map[string][]string{
		"dead":      {w.keys.Alive("dead")},
		"unhealthy": {w.keys.Alive("unhealthy"), w.keys.Report("unhealthy")},
		"stuck":     {w.keys.Alive("stuck"), w.keys.Report("stuck")},
		"lost":      {w.keys.Alive("lost")},
		"left": {
			w.keys.Alive("left"), w.keys.Report("left"), w.keys.Alive("keeps"), w.keys.Report("keeps"),
			w.keys.Instance("keeps"),
		},
	}
	s := w.snapshot()
	seen := map[string]bool{}
	for range 2 { // with and without a surplus
		for _, a := range Compute(s, w.now).Actions {
			if a.Rule == "REC-10" || a.Rule == "REC-1" {
				continue
			}
			seen[a.Instance] = true
			for _, key := range append(must[a.Instance], w.keys.Instance(a.Instance), w.keys.Group(w.group),
				w.keys.Shard()) {
				w.compares(&a, key)
			}
		}
		w.edit(func(g *store.Group) { g.Size = 6 })
		s = w.snapshot()
	}
	for id := range must {
		if !seen[id] {
			t.Errorf("nothing is done about %s", id)
		}
	}
}
