package sim_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// For any load and any failures: the size stays within its bounds, moves by no more than a step,
// and never shrinks in a storm, without numbers of most instances, or below a wish that counts.
//
// proves AUTO-1, AUTO-2, AUTO-5
func TestSizeUnderRandomLoadAndTrouble(t *testing.T) {
	for seed := range uint64(6) {
		chance := rand.New(rand.NewPCG(seed, 17))
		g := store.DefaultGroup()
		g.Name, g.Provider = "web", "cloud"
		g.Scale = &store.ScaleSpec{Min: new(2), Max: 20, Targets: []store.ScaleTarget{{Metric: store.MetricCPU, Value: 50}}}
		g.Complete()
		last, changes := 0, 0
		var w *sim.World
		w = sim.New(sim.Config{
			Seed: seed, Groups: []store.Group{g}, Replicas: 2,
			Providers: []sim.Provider{{Name: "cloud", Joins: fake.Between(20*time.Second, time.Minute)}},
			Observer: sim.Observer{
				Broken: func(at time.Time, what string) { t.Errorf("seed %d, %s: %s", seed, at.Sub(sim.Epoch), what) },
				Changed: func(at time.Time, e store.Event) {
					if w == nil || e.KV.Key != w.Keys().Status("web") || e.Deleted {
						return
					}
					v, err := store.Decode[store.Status](e.KV)
					if err != nil || v.Record.Scale == nil {
						return
					}
					st, s := v.Record, v.Record.Scale
					fail := func(what string) { t.Errorf("seed %d, %s: %s: %+v", seed, at.Sub(sim.Epoch), what, *s) }
					switch {
					case s.Size < 2 || s.Size > 20:
						fail("out of bounds")
					case last > 0 && s.Size > 2*last:
						fail("grows by more than a step")
					case last > 0 && s.Size < last-max(1, g.Scale.Down.Step.Up(last)):
						fail("shrinks by more than a step")
					case last > 0 && s.Size < last && st.Storm != nil:
						fail("shrinks in a storm")
					case last > 0 && s.Size < last && 2*s.Numbers[0].Fresh <= s.Numbers[0].Of:
						fail("shrinks without numbers")
					case last > 0 && s.Size < last && s.Size < s.Wishes[0].Size:
						fail("shrinks below a wish that counts")
					}
					if s.Size != last {
						changes++
					}
					last = s.Size
				},
			},
		})
		for range 30 {
			w.SetLoad("web", map[string]float64{store.MetricCPU: float64(chance.IntN(1200))},
				time.Duration(chance.IntN(600))*time.Second)
			for _, id := range w.Instances() {
				switch chance.IntN(14) {
				case 0:
					w.Kill(id)
				case 1:
					w.Cut(id)
				case 2:
					w.Return(id)
				case 3, 4:
					w.Unmeasured(id, chance.IntN(2) == 0)
				}
			}
			if chance.IntN(8) == 0 {
				for _, id := range w.Instances() {
					w.Cut(id)
					w.At(w.Now().Add(2*time.Minute), func() { w.Return(id) })
				}
			}
			if chance.IntN(6) == 0 {
				w.KillLeader(10*time.Second, 0)
			}
			w.RunUntil(w.Now().Add(time.Duration(chance.IntN(600)) * time.Second))
		}
		if changes < 5 {
			t.Errorf("seed %d: the size changed %d times", seed, changes)
		}
	}
}
