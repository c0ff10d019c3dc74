package plan

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A number that is missing pauses the deadline of a roll while nothing of the roll itself is wrong,
// and is recorded once.
//
// proves ROLL-4, ROLL-5
func TestWhenAnAnalysisPausesTheDeadline(t *testing.T) {
	for name, c := range map[string]struct {
		phase  store.Phase // of an instance on the new template; "": there is none
		change func(*world)
		waits  bool
	}{
		"nothing has changed yet": {waits: true},
		"it is healthy":           {phase: store.Running, waits: true},
		"it is being made":        {phase: store.Creating},
		"it is not healthy": {phase: store.Running, change: func(w *world) {
			w.agents["new"].healthy = false
			w.report("new")
		}},
		"there is none where one was": {change: func(w *world) {
			w.put(w.keys.Slot(w.group, 2), store.Slot{Schema: store.Schema, Group: w.group, Number: 2})
		}},
		"it leaves, and the other works": {change: func(w *world) { w.place("new", 1, store.Draining) }, waits: true},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) {
			g.Size, g.Rollout.Analysis = 3, []store.Analysis{{From: "errors", Max: new(0.1)}}
		})
		w.place("a", 0, store.Running, outdated)
		w.place("b", 1, store.Running, outdated)
		if c.phase != "" {
			w.place("new", 2, c.phase)
		}
		if c.change != nil {
			c.change(w)
		}
		d := w.drafted()
		if waits := d.roll.rollout.Stalls == nil; waits != c.waits {
			t.Errorf("%s: the deadline is paused: %t", name, waits)
		}
		d.analysis.holdUp() // as the next step of the roll does
		n := 0
		for _, b := range d.blocked {
			if b.Kind == store.BlockedByAnalysis {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s: it is recorded %d times that the roll waits", name, n)
		}
	}
}

// A number that is out of bounds neither holds up nor blames a rollback that an operator has
// begun: it may be what the rollback ends.
//
// proves ROLL-5, FLAP-5
func TestAnAnalysisDoesNotJudgeARollback(t *testing.T) {
	for _, back := range []bool{false, true} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) {
			g.Size, g.Rollout.Analysis = 3, []store.Analysis{{From: "errors", Max: new(0.1)}}
		})
		w.place("a", 0, store.Running)
		w.place("b", 1, store.Running, outdated)
		w.place("c", 2, store.Running, outdated)
		if back {
			g := w.spec().Record
			good := store.GoodSpec{Template: g.InstanceSpec().TemplateHash(), Spec: g.InstanceSpec()}
			w.put(w.keys.Status(w.group), store.Status{Schema: store.Schema, Group: w.group, LastGood: &good, Accepted: &g})
		}
		d := w.drafted()
		if d.analysis.analyzed() == back || d.analysis.holdUp() == back {
			t.Errorf("rollback %t: judged %t", back, d.analysis.analyzed())
		}
	}
}
