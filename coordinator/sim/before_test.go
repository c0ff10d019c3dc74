package sim_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// Instances that failed before they got the new template say nothing about it: it may be the fix.
//
// proves ROLL-5, ROLL-7
func TestAFixIsNotBlamedForWhatFailedBefore(t *testing.T) {
	g := web(20)
	g.Checks = []store.Check{{
		Name: "http", TCP: &store.TCPCheck{Port: "80"}, Interval: store.Duration(2 * time.Second),
		Timeout: store.Duration(time.Second), UnhealthyThreshold: 2, HealthyThreshold: 2,
	}}
	g.Rollout.AutoRollback, g.Heal.MaxUnhealthy = true, new(store.Percent(25))
	g.Complete()
	w := sim.New(sim.Config{
		Groups:    []store.Group{g},
		Providers: []sim.Provider{{Name: "cloud", Config: fake.Config{Zones: fake.Zones("a")}}},
		Observer: sim.Observer{Committed: func(at time.Time, a *plan.Action, _ store.Revision) {
			if a.Effect.Kind == store.EffectRollBack {
				t.Errorf("%s rolled back: %s", at.Format(time.TimeOnly), a.Why)
			}
		}},
	})
	w.RunUntil(w.Now().Add(10 * time.Minute))
	for _, id := range w.Names(store.KindInstances)[:9] {
		w.Sicken(id, sim.CuredByItself)
	}
	w.RunUntil(w.Now().Add(time.Minute))
	if sim.Read[store.Status](w, w.Keys().Status("web")).Record.Breaker == nil {
		t.Fatal("the breaker is closed")
	}
	t.Logf("%s the fix is applied", w.Now().Format(time.TimeOnly))
	w.Edit("web", func(g *store.Group) { g.Vars = map[string]string{"database": "db-2"} })
	w.RunUntil(w.Now().Add(90 * time.Second)) // the program needs that long to connect
	for _, id := range w.Names(store.KindInstances) {
		w.Heal(id)
	}
	w.RunUntil(w.Now().Add(time.Hour))
	if g, _ := w.Group("web"); g.Vars["database"] != "db-2" {
		t.Errorf("vars are %v", g.Vars)
	}
}

// Some fail before the roll, too few to open the breaker: with one more of the new template that
// fails they do not count either.
//
// proves ROLL-5
func TestFailuresFromBeforeDoNotCount(t *testing.T) {
	g := web(20)
	g.Checks = []store.Check{{
		Name: "http", TCP: &store.TCPCheck{Port: "80"}, Interval: store.Duration(2 * time.Second),
		Timeout: store.Duration(time.Second), UnhealthyThreshold: 2, HealthyThreshold: 2,
	}}
	g.Heal.Policy, g.Budget.MaxUnavailable = store.HealNone, new(store.Percent(50))
	g.Rollout.Canary = store.Amount(6)
	g.Rollout.AutoRollback, g.Heal.MaxUnhealthy = true, new(store.Percent(25))
	g.Complete()
	w := sim.New(sim.Config{
		Groups:    []store.Group{g},
		Providers: []sim.Provider{{Name: "cloud", Config: fake.Config{Zones: fake.Zones("a")}}},
		Observer: sim.Observer{Committed: func(at time.Time, a *plan.Action, _ store.Revision) {
			if a.Effect.Kind == store.EffectRollBack && a.Cause.Kind == store.CauseTemplateBreaks {
				t.Errorf("%s rolled back: %s", at.Format(time.TimeOnly), a.Why)
			}
		}},
	})
	w.RunUntil(w.Now().Add(10 * time.Minute))
	ids := w.Names(store.KindInstances)
	for _, id := range ids[:5] {
		w.Sicken(id, sim.CuredByItself)
	}
	w.RunUntil(w.Now().Add(time.Minute))
	if sim.Read[store.Status](w, w.Keys().Status("web")).Record.Breaker != nil {
		t.Fatal("the breaker is open")
	}
	w.Edit("web", func(g *store.Group) { g.Vars = map[string]string{"database": "db-2"} })
	for range 600 {
		w.RunUntil(w.Now().Add(time.Second))
		for _, id := range ids[5:] {
			spec, _ := w.Group("web")
			if sim.Read[store.Instance](w, w.Keys().Instance(id)).Record.Template == spec.InstanceSpec().TemplateHash() {
				w.Sicken(id, sim.CuredByItself) // one, by chance
				w.RunUntil(w.Now().Add(20 * time.Second))
				st := sim.Read[store.Status](w, w.Keys().Status("web")).Record
				t.Logf("%+v %+v %v", st.Breaker, st.Rollout, st.Verdicts)
				w.RunUntil(w.Now().Add(3 * time.Minute))
				return
			}
		}
	}
	t.Log("no other instance was updated")
}

// An operator who retries a roll knows more than the breaker, which does not stop that roll again.
//
// proves ROLL-5
func TestARetriedRollIsNotBlamedAgain(t *testing.T) {
	blamed := 0
	w, _, fresh := halfRolled(t, 1, sim.Observer{Committed: func(_ time.Time, a *plan.Action, _ store.Revision) {
		for _, e := range a.JournalEntries() {
			if e.Effect.Kind == store.EffectRollStopped && e.Cause.Kind == store.CauseTemplateBreaks {
				blamed++
			}
		}
	}})
	w.Edit("web", func(g *store.Group) { g.Rollout.AutoRollback = false })
	w.SpoilTemplate(fresh, sim.NeverHealthy)
	for range 100 {
		if w.RunUntil(w.Now().Add(10 * time.Second)); blamed > 0 {
			break
		}
	}
	w.Order(store.Request{Kind: store.RequestRetry, Group: "web", By: "ada"})
	w.RunUntil(w.Now().Add(20 * time.Minute))
	st := sim.Read[store.Status](w, w.Keys().Status("web")).Record
	if blamed != 1 || st.Breaker == nil || st.Rollout == nil || !st.Rollout.Retried {
		t.Errorf("blamed %d times; breaker %+v, roll %+v", blamed, st.Breaker, st.Rollout)
	}
}
