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

// A good change meets an outage of the provider that lasts four times as long as progress_deadline.
// It is not rolled back: the status names the outage, and the roll is complete once it is over.
//
// proves ROLL-4, ROLL-5
func TestAnOutageRollsNoGoodChangeBack(t *testing.T) {
	for name, trouble := range map[string]func(w *sim.World, d time.Duration){
		"it throttles":   func(w *sim.World, d time.Duration) { w.ProviderThrottles("cloud", d) },
		"its calls fail": func(w *sim.World, d time.Duration) { w.ProviderFails("cloud", d) },
	} {
		for seed := range uint64(5) {
			g := web(6)
			g.Rollout.AutoRollback, g.Rollout.ProgressDeadline = true, store.Duration(10*time.Minute)
			g.Complete()
			w := sim.New(sim.Config{
				Seed: seed, Groups: []store.Group{g},
				Providers: []sim.Provider{{Name: "cloud", Config: fake.Config{Zones: fake.Zones("a", "b")}}},
				Observer: sim.Observer{Committed: func(at time.Time, a *plan.Action, _ store.Revision) {
					for _, e := range a.JournalEntries() {
						if e.Effect.Kind == store.EffectRollStalled || e.Effect.Kind == store.EffectRollBack {
							t.Errorf("%s, seed %d: %s %s: %s", name, seed, at.Format(time.TimeOnly), e.Rule, e.Why)
						}
					}
				}},
			})
			w.RunUntil(w.Now().Add(10 * time.Minute))
			begun := w.Now()
			trouble(w, 40*time.Minute)
			w.Edit("web", func(g *store.Group) { g.Template = store.Template{InstanceType: "large"} })
			for range 4 { // another leader has yet to see the outage
				w.RunUntil(w.Now().Add(7*time.Minute + 30*time.Second))
				if seed%2 == 1 {
					w.KillLeader(time.Minute, 0)
				}
			}
			w.RunUntil(w.Now().Add(4 * time.Minute))
			st := sim.Read[store.Status](w, w.Keys().Status("web")).Record
			i := slices.IndexFunc(st.Blocked, func(b store.Blocked) bool { return b.Kind == store.BlockedByOutage })
			if i < 0 {
				t.Errorf("%s, seed %d: the status names no outage: %+v", name, seed, st.Blocked)
			} else if of := st.Blocked[i].Of; of.Name != "cloud" || of.Text == "" ||
				seed%2 == 0 && of.Since.Sub(begun) > time.Minute {
				t.Errorf("%s, seed %d: the status says %+v; the outage began at %s", name, seed, of, begun)
			}
			w.RunUntil(w.Now().Add(time.Hour))
			st = sim.Read[store.Status](w, w.Keys().Status("web")).Record
			if st.Rollout != nil || st.Outdated != 0 || w.Working("web") != 6 || len(st.Blocked) > 0 {
				t.Errorf("%s, seed %d: the roll is not done: %+v, %d outdated, %d work", name, seed, st.Rollout, st.Outdated,
					w.Working("web"))
			}
		}
	}
}

// A live update is to mend a group of which all instances fail their checks. It helps new machines
// alone: the old ones fail as before, and are replaced. That is no reason to stop the roll.
//
// proves FLAP-5
func TestAFixThatHelpsNewMachinesAloneIsNotBlamed(t *testing.T) {
	for seed := range uint64(5) {
		g := web(10)
		g.Budget.MaxExpansion = 3
		g.Complete()
		w := sim.New(sim.Config{
			Seed: seed, Groups: []store.Group{g},
			Providers: []sim.Provider{{Name: "cloud", Config: fake.Config{Zones: fake.Zones("a", "b")}}},
			Observer: sim.Observer{Committed: func(at time.Time, a *plan.Action, _ store.Revision) {
				for _, e := range a.JournalEntries() {
					if e.Effect.Kind == store.EffectRollStopped {
						t.Errorf("seed %d: %s %s: %s", seed, at.Format(time.TimeOnly), e.Rule, e.Why)
					}
				}
			}},
		})
		w.RunUntil(w.Now().Add(20 * time.Minute))
		for _, id := range w.Instances() {
			w.Sicken(id, sim.CuredByNothing)
		}
		w.Edit("web", func(g *store.Group) { g.Vars = map[string]string{"color": "blue"} })
		w.RunUntil(w.Now().Add(time.Hour))
		st := sim.Read[store.Status](w, w.Keys().Status("web")).Record
		if st.Rollout != nil || st.Outdated != 0 || w.Working("web") != 10 {
			t.Errorf("seed %d: the roll is not done: %+v, %d outdated, %d work", seed, st.Rollout, st.Outdated,
				w.Working("web"))
		}
	}
}
