package sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// A roll restarts machines, and the provider carries out no restart for longer than
// registration_timeout. Nothing has run on the new template, so nothing is blamed on it, and the
// roll ends once the provider works again.
//
// proves FLAP-5
func TestAProviderThatRestartsNothingBlamesNoTemplate(t *testing.T) {
	for name, trouble := range map[string]func(w *sim.World, d time.Duration){
		"it throttles":   func(w *sim.World, d time.Duration) { w.ProviderThrottles("cloud", d) },
		"its calls fail": func(w *sim.World, d time.Duration) { w.ProviderFails("cloud", d) },
		"it is slow":     func(w *sim.World, d time.Duration) { w.ProviderSlows("cloud", d) },
	} {
		g := web(12)
		g.Budget.MaxUnavailable, g.RegistrationTimeout = new(store.Amount(4)), store.Duration(2*time.Minute)
		g.Rollout.MinimalAction, g.Rollout.AutoRollback = store.ActionRestart, true
		g.Rollout.ProgressDeadline = store.Duration(12 * time.Hour) // a stall cannot be why the roll ends
		g.Complete()
		w := sim.New(sim.Config{
			Groups:    []store.Group{g},
			Providers: []sim.Provider{{Name: "cloud", Config: fake.Config{Zones: fake.Zones("a", "b")}}},
			Observer: sim.Observer{Committed: func(at time.Time, a *plan.Action, _ store.Revision) {
				for _, e := range a.JournalEntries() {
					if e.Effect.Kind == store.EffectRollStopped || e.Effect.Kind == store.EffectRollBack {
						t.Errorf("%s: %s %s: %s", name, at.Format(time.TimeOnly), e.Rule, e.Why)
					}
				}
			}},
		})
		w.RunUntil(w.Now().Add(10 * time.Minute))
		trouble(w, 20*time.Minute)
		w.Edit("web", func(g *store.Group) { g.Vars = map[string]string{"color": "blue"} })
		w.RunUntil(w.Now().Add(2 * time.Hour))
		st := sim.Read[store.Status](w, w.Keys().Status("web")).Record
		if st.Rollout != nil || st.Outdated != 0 || w.Working("web") != 12 {
			t.Errorf("%s: the roll is not done: %+v, %d outdated, %d work", name, st.Rollout, st.Outdated, w.Working("web"))
		}
	}
}

// Nothing is known to be wrong with a machine whose restart the provider only puts off: no machine
// of a roll that restarts is replaced, though the throttling lasts ten times as long as
// registration_timeout. The status names it meanwhile.
//
// proves HEAL-1, PROV-5
func TestAMachineWhoseRestartIsThrottledStays(t *testing.T) {
	for seed := range uint64(5) {
		w, before := throttledRoll(seed, 20*time.Minute)
		w.RunUntil(w.Now().Add(15 * time.Minute))
		st := sim.Read[store.Status](w, w.Keys().Status("web")).Record
		if !slices.ContainsFunc(st.Blocked, func(b store.Blocked) bool {
			return b.Kind == store.BlockedByProvider && b.Work == store.WorkRestart && b.Instance != ""
		}) {
			t.Errorf("seed %d: the status names no restart that is put off: %+v", seed, st.Blocked)
		}
		w.RunUntil(w.Now().Add(2 * time.Hour))
		allStayed(t, w, before, seed)
	}
}

// A new leader does not know for how long the provider has put off a restart. It asks again before
// it judges the restart, and replaces no machine that works.
//
// proves HEAL-1, PROV-5
func TestANewLeaderWaitsForAThrottledRestart(t *testing.T) {
	for seed := range uint64(5) {
		w, before := throttledRoll(seed, 40*time.Minute)
		for range 2 {
			w.RunUntil(w.Now().Add(9 * time.Minute))
			w.Resign(0)
			w.RunUntil(w.Now().Add(9 * time.Minute))
			w.KillLeader(time.Minute, 0)
		}
		w.RunUntil(w.Now().Add(2 * time.Hour))
		allStayed(t, w, before, seed)
	}
}

// throttledRoll returns a world in which a roll restarts the machines of a group of 12, and the
// provider throttles all calls for a time that begins with it, and the instances of before.
func throttledRoll(seed uint64, d time.Duration) (w *sim.World, before []string) {
	g := web(12)
	g.Budget.MaxUnavailable, g.RegistrationTimeout = new(store.Amount(4)), store.Duration(2*time.Minute)
	g.Rollout.MinimalAction = store.ActionRestart
	g.Complete()
	w = sim.New(sim.Config{
		Seed: seed, Groups: []store.Group{g},
		Providers: []sim.Provider{{Name: "cloud", Config: fake.Config{Zones: fake.Zones("a", "b")}}},
	})
	w.RunUntil(w.Now().Add(10 * time.Minute))
	before = w.Instances()
	w.ProviderThrottles("cloud", d)
	w.Edit("web", func(g *store.Group) { g.Vars = map[string]string{"color": "blue"} })
	return w, before
}

// allStayed fails a test unless the roll is done and the group has the same instances as before.
func allStayed(t *testing.T, w *sim.World, before []string, seed uint64) {
	t.Helper()
	st := sim.Read[store.Status](w, w.Keys().Status("web")).Record
	if after := w.Instances(); !slices.Equal(before, after) || st.Outdated != 0 || w.Working("web") != 12 {
		t.Errorf("seed %d: instances\n%v\nbefore\n%v; %d outdated, %d work", seed, after, before, st.Outdated,
			w.Working("web"))
	}
}
