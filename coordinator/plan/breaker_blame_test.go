package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// What counts against a new template is positive evidence only: its own instances fail their
// checks, and beside them, in the same zone, instances of the last good template work.
//
// proves ROLL-5, ROLL-7
func TestWhatTheBreakerSaysAboutATemplate(t *testing.T) {
	const good, other = "good", "other"
	from := func(template, zone string) func(*store.Instance) {
		return func(r *store.Instance) {
			r.Zone = zone
			if template != "" {
				r.Template = template
			}
		}
	}
	type instance struct {
		template, zone string // template "": the new one
		phase          store.Phase
		fails          bool
	}
	fails := func(zone string) instance { return instance{zone: zone, phase: store.Running, fails: true} }
	works := func(template, zone string) instance {
		return instance{template: template, zone: zone, phase: store.Running}
	}
	good1 := works(good, "a")
	failed := func(template, zone string) instance { return instance{template, zone, store.Running, true} }
	up := func(phase store.Phase, template string) instance { return instance{template, "a", phase, false} }
	for name, c := range map[string]struct {
		list []instance
		want int
	}{
		"beside good ones":              {[]instance{fails("a"), fails("a"), fails("b"), good1, works(good, "b")}, 3},
		"and some new ones work":        {[]instance{fails("a"), fails("a"), works("", "a"), good1}, 2},
		"the good ones fail, too":       {[]instance{fails("a"), fails("a"), failed(good, "a"), good1}, 0},
		"one of a third fails":          {[]instance{fails("a"), fails("a"), failed(other, "b"), good1}, 0},
		"none is left to compare":       {[]instance{fails("a"), fails("a"), fails("b")}, 0},
		"only another one works":        {[]instance{fails("a"), fails("a"), works(other, "a")}, 0},
		"the zone may be why":           {[]instance{fails("a"), fails("a"), works(good, "b")}, 0},
		"the good one is new":           {[]instance{fails("a"), up(store.Checking, good)}, 0},
		"the new ones are not up":       {[]instance{up(store.Creating, ""), up(store.Booting, ""), good1}, 0},
		"the good one is being deleted": {[]instance{fails("a"), up(store.Deleting, good)}, 0},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size = len(c.list) })
		for i, in := range c.list {
			id := fmt.Sprintf("i%d", i)
			w.place(id, i, in.phase, from(in.template, in.zone))
			if in.fails {
				w.turn(id, false)
			}
		}
		if got := w.drafted().healing.failsBeside(good); got != c.want {
			t.Errorf("%s: %d count, want %d", name, got, c.want)
		}
	}
}

// An instance of the good template that is suspect may be so for the reason why new ones fail.
//
// proves ROLL-5
func TestASuspectBlamesNoTemplate(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 4 })
	for i, template := range []string{"", "", "good", "good"} {
		w.place(fmt.Sprintf("i%d", i), i, store.Running, func(r *store.Instance) {
			if template != "" {
				r.Template = template
			}
		})
	}
	w.turn("i0", false)
	w.turn("i1", false)
	if got := w.drafted().healing.failsBeside("good"); got != 2 {
		t.Fatalf("%d count while all are there, want 2", got)
	}
	w.noGrace = true
	w.drop(w.keys.Alive("i3"))
	if got := w.drafted().healing.failsBeside("good"); got != 0 {
		t.Errorf("%d count", got)
	}
}

// Each of these is enough for the breaker to doubt no template.
//
// proves ROLL-5, ROLL-7
func TestWhatKeepsTheBreakerFromDoubting(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*draft)
		want bool
	}{
		"nothing":                      {func(*draft) {}, true},
		"a storm":                      {func(d *draft) { d.storms.storm = &store.Storm{} }, false},
		"the grace":                    {func(d *draft) { d.s.GraceEnd = d.now.Add(time.Second) }, false},
		"an operator's retry":          {func(d *draft) { d.roll.rollout.Retried = true }, false},
		"it was open before":           {func(d *draft) { d.healing.breaker.Since = d.now.Add(-time.Hour) }, false},
		"it is blamed already":         {func(d *draft) { d.roll.rollout.Blamed = "3 failures" }, false},
		"no template was good":         {func(d *draft) { d.g.Status.Record.LastGood = nil }, false},
		"the breaker bears that many":  {func(d *draft) { d.healing.breaker.Limit = 3 }, false},
		"no roll: nothing new is made": {func(d *draft) { d.roll.rollout = nil }, false},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size = 4 })
		for i := range 4 {
			w.place(fmt.Sprintf("i%d", i), i, store.Running, func(r *store.Instance) {
				if i == 3 {
					r.Template = "good"
				}
			})
		}
		for i := range 3 {
			w.turn(fmt.Sprintf("i%d", i), false)
		}
		w.noGrace = true
		d := w.drafted()
		d.healing.breaker = &store.Breaker{Since: d.now, Limit: 2, Doubt: &store.Timer{Start: d.now}}
		d.roll.rollout = &store.Rollout{Since: d.now.Add(-time.Minute)}
		d.g.Status.Record.LastGood = &store.GoodSpec{Template: "good", Spec: w.spec().Record.InstanceSpec()}
		c.edit(d)
		d.healing.blameTemplate()
		if got := d.healing.breaker.Doubt != nil; got != c.want {
			t.Errorf("%s: it doubts: %t", name, got)
		}
	}
}

// A check that notices late delays the verdict.
//
// proves ROLL-5
func TestHowLongASlowCheckTakes(t *testing.T) {
	a, b := store.DefaultCheck(), store.DefaultCheck()
	b.Interval, b.UnhealthyThreshold = 10*a.Interval, 3
	if got, want := slowestFailure([]store.Check{a, b}), 3*b.Interval.D()+b.Timeout.D(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := slowestFailure(nil); got != 0 {
		t.Errorf("%s without checks", got)
	}
}
