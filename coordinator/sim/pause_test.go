package sim_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// While no coordinator decides, nothing says what load asked for: after such a pause the group
// shrinks no earlier than down.window later, however long the pause was and whatever load asks for.
//
// proves AUTO-2
func TestAPauseOfTheCoordinatorsRestartsTheWindow(t *testing.T) {
	const window = 5 * time.Minute
	for name, pause := range map[string]func(w *sim.World, d time.Duration){
		"the only replica dies": func(w *sim.World, d time.Duration) { w.KillLeader(d, 0) },
		"etcd does not answer":  func(w *sim.World, d time.Duration) { w.StopEtcd(d, 0) },
	} {
		for _, d := range []time.Duration{time.Minute, 3 * time.Minute, 20 * time.Minute} {
			g := store.DefaultGroup()
			g.Name, g.Provider = "web", "cloud"
			g.Scale = &store.ScaleSpec{Min: new(2), Max: 20, Targets: []store.ScaleTarget{{Metric: store.MetricCPU, Value: 50}}}
			g.Complete()
			w := sim.New(sim.Config{
				Seed: 1, Groups: []store.Group{g}, Replicas: 1,
				Providers: []sim.Provider{{Name: "cloud", Joins: fake.Between(20*time.Second, time.Minute)}},
			})
			w.SetLoad("web", map[string]float64{store.MetricCPU: 400}, 0)
			w.RunUntil(w.Now().Add(30 * time.Minute))
			size := w.SizeOf("web")
			w.SetLoad("web", map[string]float64{store.MetricCPU: 50}, 0)
			pause(w, d)
			over := w.Now().Add(d)
			w.RunUntil(over.Add(window - 10*time.Second))
			if now := w.SizeOf("web"); now != size || size < 8 {
				t.Errorf("%s for %s: it shrinks from %d to %d within %s", name, d, size, now, window)
			}
			w.RunUntil(over.Add(3 * window))
			if now := w.SizeOf("web"); now >= size {
				t.Errorf("%s for %s: it stays at %d for good", name, d, now)
			}
		}
	}
}

// While one of two numbers is missing, the other one does not say that fewer instances would do:
// down.window passes after the missing one is back.
//
// proves AUTO-2
func TestASilentSourceRestartsTheWindow(t *testing.T) {
	const window = 5 * time.Minute
	silent, queue := false, 800.0
	g := store.DefaultGroup()
	g.Name, g.Provider = "web", "cloud"
	g.Scale = &store.ScaleSpec{Min: new(2), Max: 20, Targets: []store.ScaleTarget{
		{Metric: store.MetricCPU, Value: 50}, {From: "queue", Value: 100},
	}}
	g.Complete()
	w := sim.New(sim.Config{
		Seed: 1, Groups: []store.Group{g}, Providers: []sim.Provider{{Name: "cloud"}},
		Sources: map[string]sim.Source{"queue": func(*sim.World, string) (float64, error) {
			if silent {
				return 0, errors.New("it does not answer")
			}
			return queue, nil
		}},
	})
	w.SetLoad("web", map[string]float64{store.MetricCPU: 100}, 0)
	w.RunUntil(w.Now().Add(20 * time.Minute))
	silent, queue = true, 100
	w.RunUntil(w.Now().Add(20 * time.Minute))
	silent = false
	w.RunUntil(w.Now().Add(window - 10*time.Second))
	if size := w.SizeOf("web"); size != 8 {
		t.Errorf("it has %d instances before the window has passed, want 8", size)
	}
	w.RunUntil(w.Now().Add(2 * window))
	if size := w.SizeOf("web"); size != 2 {
		t.Errorf("it has %d instances in the end, want 2", size)
	}
}

// What skips time skips no number that a size follows: a time without any is a pause.
//
// proves AUTO-2, AUTO-4
func TestSkippingLeavesOutNoNumber(t *testing.T) {
	for name, follow := range map[string]bool{"load": true, "none": false} {
		g := store.DefaultGroup()
		g.Name, g.Provider, g.Size = "web", "cloud", 3
		g.Scale = &store.ScaleSpec{Min: new(2), Max: 20, Targets: []store.ScaleTarget{{Metric: store.MetricCPU, Value: 50}}}
		g.Complete()
		w := sim.New(sim.Config{
			Seed: 1, Groups: []store.Group{g}, Providers: []sim.Provider{{Name: "cloud"}}, LoadEvery: 30 * time.Second,
		})
		if follow {
			w.SetLoad("web", map[string]float64{store.MetricCPU: 150}, 0)
		}
		w.RunUntil(w.Now().Add(20 * time.Minute))
		longest := time.Duration(0)
		for end := w.Now().Add(time.Hour); w.Now().Before(end); {
			d := w.Skip(end)
			if longest = max(longest, d); d == 0 {
				w.Step()
			}
		}
		if follow != (longest < 30*time.Second) || longest == 0 {
			t.Errorf("%s: it skips %s at once", name, longest)
		}
	}
}
