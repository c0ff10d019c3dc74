package coordinator_test

import (
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// meter notes what it is told of detection and repair.
type meter struct {
	coordinator.Meter
	mu       sync.Mutex
	detected map[store.Verdict][]time.Duration
	repaired map[store.Verdict][]time.Duration
}

func (m *meter) Detected(v store.Verdict, after time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.detected[v] = append(m.detected[v], after)
}

func (m *meter) Repaired(v store.Verdict, after time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.repaired[v] = append(m.repaired[v], after)
}

func (m *meter) once(v store.Verdict) (detected, repaired time.Duration, once bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.detected[v]) != 1 || len(m.repaired[v]) != 1 {
		return 0, 0, false
	}
	return m.detected[v][0], m.repaired[v][0], true
}

// An agent that falls silent is one detection and one repair, each as long as it took.
//
// proves OBS-2
func TestDetectionAndRepairAreMeasured(t *testing.T) {
	inWorld(t, fake.Config{Boot: 3 * time.Second}, func(w *world) {
		m := &meter{
			Meter: coordinator.Unmetered{}, detected: map[store.Verdict][]time.Duration{},
			repaired: map[store.Verdict][]time.Duration{},
		}
		w.start("a", func(_ *coordinator.Config, deps *coordinator.Deps) { deps.Meter = m })
		g := w.group("web", 3)
		w.apply(g)
		ids := w.up(3)
		w.pass(5 * time.Minute) // no grace any more
		began := time.Now()
		w.silence(ids[0])
		w.until(5*time.Minute, "one failure was measured",
			func() bool { _, _, once := m.once(store.Lost); return once })
		detected, repaired, _ := m.once(store.Lost)
		if whole := time.Since(began); detected <= 0 || detected > g.Report.LeaseTTL.D()+2*time.Second ||
			repaired < 3*time.Second || detected+repaired > whole+time.Second {
			t.Errorf("detected within %s, repaired within %s, of %s in all", detected, repaired, whole)
		}
		w.pass(time.Minute)
		if _, _, once := m.once(store.Lost); !once {
			t.Error("one failure was measured more than once")
		}
	})
}
