package sim_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// halfRolled is a world whose group has a new template in half of its twenty slots. The breaker
// opens when more than five fail their checks. A stall cannot be why the roll ends.
func halfRolled(t *testing.T, seed uint64, observer sim.Observer) (w *sim.World, old, fresh string) {
	t.Helper()
	g := web(20)
	g.Checks = []store.Check{{
		Name: "http", TCP: &store.TCPCheck{Port: "80"}, Interval: store.Duration(10 * time.Second),
		Timeout: store.Duration(time.Second), UnhealthyThreshold: 3, HealthyThreshold: 2,
	}}
	g.Rollout.AutoRollback, g.Rollout.ProgressDeadline = true, store.Duration(12*time.Hour)
	g.Heal.MaxUnhealthy = new(store.Percent(25))
	g.Complete()
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	w = sim.New(sim.Config{
		Seed: seed, Groups: []store.Group{g}, Observer: observer,
		Providers: []sim.Provider{{Name: "cloud", Config: fake.Config{Zones: fake.Zones("a", "b", "c")}}},
	})
	w.RunUntil(w.Now().Add(10 * time.Minute))
	old = sim.Read[store.Status](w, w.Keys().Status("web")).Record.LastGood.Template
	w.Edit("web", func(g *store.Group) { g.Template.InstanceType = "large" })
	spec, _ := w.Group("web")
	fresh = spec.InstanceSpec().TemplateHash()
	for range 1000 {
		w.RunUntil(w.Now().Add(5 * time.Second))
		if r := sim.Read[store.Status](w, w.Keys().Status("web")).Record.Rollout; r != nil && r.Done >= 10 {
			return w, old, fresh
		}
	}
	t.Fatal("half of the roll is never done")
	return nil, "", ""
}

// When the breaker is open because only instances of the new template fail, auto_rollback brings
// the last good template back. When what all instances depend on breaks, or the provider makes no
// machines, nothing is blamed on the template, and it stays.
//
// proves ROLL-5, ROLL-7
func TestTheBreakerRollsBackOnlyATemplateThatFailsAlone(t *testing.T) {
	for name, c := range map[string]struct {
		breaks func(w *sim.World, old, fresh string)
		mends  func(w *sim.World, old, fresh string)
		back   bool
		opens  bool
	}{
		"the new template breaks": {
			breaks: func(w *sim.World, _, fresh string) { w.SpoilTemplate(fresh, sim.NeverHealthy) },
			back:   true, opens: true,
		},
		"what all depend on breaks": {
			breaks: func(w *sim.World, old, fresh string) {
				w.SpoilTemplate(fresh, sim.NeverHealthy)
				w.SpoilTemplate(old, sim.NeverHealthy)
			},
			mends: func(w *sim.World, old, fresh string) {
				w.MendTemplate(old)
				w.MendTemplate(fresh)
			},
			opens: true,
		},
		"the provider has no machines": {
			breaks: func(w *sim.World, _, _ string) {
				for _, z := range []string{"a", "b", "c"} {
					w.Fill("cloud", z, true)
				}
			},
			mends: func(w *sim.World, _, _ string) {
				for _, z := range []string{"a", "b", "c"} {
					w.Fill("cloud", z, false)
				}
			},
		},
	} {
		for seed := range uint64(3) {
			blamed, opened := false, false
			w, old, fresh := halfRolled(t, seed, sim.Observer{Committed: func(_ time.Time, a *plan.Action, _ store.Revision) {
				blamed = blamed || a.Effect.Kind == store.EffectRollBack && a.Cause.Kind == store.CauseTemplateBreaks
			}})
			c.breaks(w, old, fresh)
			begun := w.Now()
			template := func() string {
				g, _ := w.Group("web")
				return g.InstanceSpec().TemplateHash()
			}
			for w.Now().Sub(begun) < 20*time.Minute && template() == fresh {
				w.RunUntil(w.Now().Add(5 * time.Second))
				opened = opened || sim.Read[store.Status](w, w.Keys().Status("web")).Record.Breaker != nil
			}
			if opened != c.opens {
				t.Errorf("%s, seed %d: the breaker has opened: %v", name, seed, opened)
			}
			if back := template() == old; back != c.back || blamed != c.back {
				t.Errorf("%s, seed %d: rolled back: %v, by the breaker: %v", name, seed, back, blamed)
			}
			if c.back {
				t.Logf("%s, seed %d: rolled back after %s", name, seed, w.Now().Sub(begun))
			}
			if c.mends != nil {
				c.mends(w, old, fresh)
			}
			w.RunUntil(w.Now().Add(3 * time.Hour))
			st := sim.Read[store.Status](w, w.Keys().Status("web")).Record
			if st.Rollout != nil || st.Outdated != 0 || w.Working("web") != 20 {
				t.Errorf("%s, seed %d: the roll is not done: %+v, %d work", name, seed, st.Rollout, w.Working("web"))
			}
		}
	}
}
