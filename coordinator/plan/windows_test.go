package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// windowFrom has the group's window open for an hour a day; the world begins at midnight.
func windowFrom(from string, allow ...string) func(*world) {
	return func(w *world) {
		w.edit(func(g *store.Group) {
			g.Windows = append(g.Windows, store.Window{From: from, For: store.Duration(time.Hour), Allow: allow})
		})
	}
}

// What is planned waits for a window and for the end of a freeze, and is told until when; what
// heals, what an operator orders, and what has begun do not.
//
// proves ROLL-6, SAFE-13, SPOT-3, SPOT-4, REC-17
func TestWhatWaitsForAWindow(t *testing.T) {
	closed, open := windowFrom("22:00"), windowFrom("00:00")
	size := func(n int, change ...func(*store.Group)) func(*world) {
		return func(w *world) {
			w.edit(func(g *store.Group) {
				g.Size, g.Budget.MaxExpansion = n, 2
				for _, c := range change {
					c(g)
				}
			})
		}
	}
	all := func(steps ...func(*world)) func(*world) {
		return func(w *world) {
			for _, s := range steps {
				s(w)
			}
		}
	}
	in := func(id string, slot int, change ...func(*store.Instance)) func(*world) {
		return func(w *world) { w.place(id, slot, store.Running, change...) }
	}
	hour := store.Duration(time.Hour)
	forced := func(g *store.Group) { g.Expiry.ForcedAge = &hour }
	forcedOut := func(w *world) {
		w.edit(func(g *store.Group) {
			g.Size, g.Budget.MaxExpansion, g.Budget.MaxUnavailable, g.Expiry.ForcedAge = 2, 1, new(store.Amount(1)), &hour
		})
		w.oldAndNew("no room")
	}
	freeze := func(w *world) {
		w.editShard(func(s *store.Shard) {
			s.Freeze = &store.Freeze{To: w.now.Add(30 * time.Minute), Why: "black friday", By: "ada"}
		})
	}
	lastGood := func(w *world) {
		g := w.spec().Record
		good := store.GoodSpec{Template: g.InstanceSpec().TemplateHash(), Spec: g.InstanceSpec()}
		w.put(w.keys.Status(w.group), store.Status{Schema: store.Schema, Group: w.group, LastGood: &good, Accepted: &g})
	}
	remade := func(r *store.Instance) { r.Template, r.Spec.Template.InstanceType = "t0", "small" }
	rechecked := func(r *store.Instance) { r.Template, r.Spec.Checks = "t0", []store.Check{store.DefaultCheck()} }
	const until = "2026-01-01T22:00:00Z"
	for _, c := range []struct {
		name  string
		world func(*world)
		want  string
		waits string // until when something waits by ROLL-6; "" if nothing does
	}{
		{"a roll", all(size(1), in("a", 0, remade), closed), "", until},
		{"a roll in its window", all(size(1), in("a", 0, remade), open), "ROLL-1 +0", ""},
		{"a roll in a window that does not allow it", all(size(1), in("a", 0, remade), windowFrom("00:00",
			store.PlannedExpiry), closed), "", until},
		{
			"a roll that no window allows", all(size(1), in("a", 0, remade), windowFrom("00:00", store.PlannedExpiry)), "",
			"its windows allow it: leasehold group edit web",
		},
		{"a relaunch by an operator", all(size(1), in("a", 0), size(1, func(g *store.Group) {
			g.Relaunch = store.Relaunch{Number: 1, Action: store.ActionRecreate}
		}), closed), "ROLL-1 +0", ""},
		{"a relaunch that brings a new template too", all(size(1), in("a", 0, remade), size(1, func(g *store.Group) {
			g.Relaunch = store.Relaunch{Number: 1, Action: store.ActionRecreate}
		}), closed), "", until},
		{"the way back", all(size(1), in("a", 0, remade), closed, lastGood), "ROLL-1 +0", ""},
		{"healing", all(size(1), in("a", 0), func(w *world) { w.turn("a", false) }, closed, freeze), "HEAL-2 +0", ""},
		{"a live change", all(size(1), in("a", 0, rechecked), closed), "", until},
		{"a live change of a failed one, which heals without it", all(size(1), in("a", 0, rechecked),
			func(w *world) { w.turn("a", false) }, closed), "HEAL-2 +0", until},
		{"a live change of a failed one that nothing else heals", all(size(1, func(g *store.Group) {
			g.Heal.Policy = store.HealNone
		}), in("a", 0, rechecked), func(w *world) { w.turn("a", false) }, closed), "ROLL-2 ~a", ""},
		{"a notice", all(size(1), in("a", 0, spotted), closed, freeze), "SPOT-2 +0", ""},
		{"an order", all(size(1), in("a", 0, condemned(false)), closed, freeze), "REC-16 +0", ""},
		{"an evacuation", all(size(1), in("a", 0), closed, freeze, func(w *world) { w.evacuate("a") }), "DRAIN-3 +0", ""},
		{"a failed one that is healed by the change alone", all(size(1,
			func(g *store.Group) { g.Heal.Policy = store.HealNone }),
			in("a", 0, remade), func(w *world) { w.turn("a", false) }, closed), "ROLL-1 +0", ""},
		{"scale-down", all(size(1), in("a", 0), in("b", 1), closed), "", until},
		{"scale-down in its window", all(size(1), in("a", 0), in("b", 1), open), "HEAL-9 -a", ""},
		{
			"scale-down by a failed one", all(size(1), in("a", 0), in("b", 1), func(w *world) { w.turn("b", false) }, closed),
			"HEAL-9 -b", "",
		},
		{"scale-down by a doomed one", all(size(1), in("a", 0), in("b", 1, spotted), closed), "", ""},
		{"scale-down by one that has not come up", all(size(1), in("a", 0), func(w *world) {
			w.place("b", 1,
				store.Creating)
		}, closed), "HEAL-9 -b", ""},
		{
			"a group that is stopped", all(size(1, func(g *store.Group) { g.Stopped = true }), in("a", 0), closed, freeze),
			"REC-11 -a", "",
		},
		{"expiry that may wait", all(size(1, func(g *store.Group) { g.Expiry.EligibleAge = &hour }), in("a", 0,
			old(48*time.Hour)), closed), "", until},
		{"forced expiry", all(size(1, forced), in("a", 0, old(2*time.Hour)), closed), "", until},
		{"forced expiry past its grace", all(size(1, forced), in("a", 0, old(26*time.Hour)), closed, freeze), "EXP-1 +0", ""},
		{"forced expiry whose grace ends before the window", all(size(1, forced, func(g *store.Group) {
			g.Expiry.ForcedGrace = new(store.Duration(0))
		}), in("a", 0, old(2*time.Hour)), closed), "EXP-1 +0", ""},
		{"forced expiry without a replacement", all(forcedOut, closed), "", until},
		{"forced expiry without a replacement, in its window", all(forcedOut, open), "EXP-1 -a", ""},
		{"the end of a spot machine's time", all(size(1, func(g *store.Group) { g.Spot.Enabled = true }), in("a", 0,
			old(25*time.Hour)), closed, freeze), "SPOT-3 +0", ""},
		{"on demand and too old", all(size(0, func(g *store.Group) { g.OnDemandAge = hour }), in("a", -1, old(2*time.Hour)),
			closed), "", until},
		{"evening the zones", all(size(2, func(g *store.Group) { g.Spread = store.SpreadEven }), in("a", 0), in("b", 1),
			closed), "", until},
		{"evening the zones in the window", all(size(2, func(g *store.Group) { g.Spread = store.SpreadEven }), in("a", 0),
			in("b", 1), open), "REC-17 +0", ""},
		{"the return to spot", all(size(1, func(g *store.Group) { g.Capacity.Spot = 100 }), in("a", 0,
			func(r *store.Instance) {
				r.Spec.Spot, r.Fallback = false, true
			}), closed), "", until},
		{"a freeze of the shard", all(size(1), in("a", 0, remade), freeze), "", "2026-01-01T00:30:00Z"},
		{"a freeze in a window", all(size(1), in("a", 0, remade), open, freeze), "", "2026-01-01T00:30:00Z"},
		{"a freeze, and then no window", all(size(1), in("a", 0, remade), closed, freeze), "", until},
		{"a freeze of the group", all(size(1, func(g *store.Group) {
			g.Freeze = store.FreezeSpec{From: "2026-01-01T00:00:00Z", To: "2026-01-02T00:00:00+01:00"}
		}), in("a", 0, remade)), "", "2026-01-01T23:00:00Z"},
		{"a freeze to come", all(size(1, func(g *store.Group) {
			g.Freeze = store.FreezeSpec{From: "2026-01-01T00:00:01Z", To: "2026-01-02T00:00:00Z"}
		}), in("a", 0, remade)), "ROLL-1 +0", ""},
		{"clocks that differ", all(size(1), in("a", 0, remade), open, func(w *world) {
			w.put(w.keys.Replica("b"), store.Replica{Schema: store.Schema, ID: "b", ClockOff: store.Duration(-20 * time.Second)})
			w.put(w.keys.Replica("c"), store.Replica{Schema: store.Schema, ID: "c", ClockOff: store.Duration(10 * time.Second)})
		}), "", "they differ by less than 30s"},
		{"clocks that differ, and no windows", all(size(1), in("a", 0, remade), func(w *world) {
			w.put(w.keys.Replica("b"), store.Replica{Schema: store.Schema, ID: "b", ClockOff: store.Duration(time.Hour)})
		}), "ROLL-1 +0", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size = 1 })
			c.world(w)
			w.pass(0)
			w.planIsSound()
			if got := w.briefly(); got != c.want {
				t.Errorf("planned %q, want %q", got, c.want)
			}
			waits := ""
			for _, b := range w.blockedBy() {
				if b.Rule == "ROLL-6" {
					waits += b.Until
				}
			}
			if waits != c.waits {
				t.Errorf("waits until %q, want %q: %+v", waits, c.waits, w.blockedBy())
			}
		})
	}
}

// A roll that waits for its window is not stalled, goes on with the next instance in each window,
// and brings to an end what it has begun. The leader looks again when the window opens.
//
// proves ROLL-4, ROLL-6
func TestARollThroughWindows(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) {
		g.Size, g.Rollout.ProgressDeadline = 3, store.Duration(50*time.Second)
		g.Rollout.StartupDuration = store.Duration(30 * time.Second)
		g.Windows = []store.Window{
			{From: "01:00", For: store.Duration(time.Minute)}, {From: "03:00", For: store.Duration(30 * time.Minute)},
		}
	})
	w.goOn(5 * time.Minute)
	w.edit(func(g *store.Group) { g.Template.InstanceType = "large" })
	hash := w.spec().Record.InstanceSpec().TemplateHash()
	done := func() (n int) {
		for _, v := range w.instances() {
			if v.Record.Template == hash && v.Record.Phase == store.Running {
				n++
			}
		}
		return n
	}
	w.goOn(50 * time.Minute)
	st := read[store.Status](w, w.keys.Status(w.group)).Record
	if n := done(); n != 0 || st.Rollout == nil || st.Rollout.Stalled != "" {
		t.Fatalf("before the window %d are changed, and the roll is %+v", n, st.Rollout)
	}
	w.goOn(65 * time.Minute) // to 2:00
	if n := done(); n == 0 || n == 3 {
		t.Errorf("a window of a minute was enough for %d of 3", n)
	}
	if st := read[store.Status](w, w.keys.Status(w.group)).Record; len(st.Blocked) != 1 ||
		!strings.Contains(st.Blocked[0].Until, "T03:00:00Z") || st.Rollout.Stalled != "" {
		t.Errorf("it waits for %+v, stalled %q", st.Blocked, st.Rollout.Stalled)
	}
	w.goOn(90 * time.Minute)
	if n := done(); n != 3 {
		t.Errorf("after the second window %d are changed", n)
	}
}
