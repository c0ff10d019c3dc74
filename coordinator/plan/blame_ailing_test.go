package plan

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// An instance that failed its checks before it got its template in its place, and still does, says
// nothing against that template. It does once it has worked with it, or fails in another way.
//
// proves FLAP-5
func TestWhatFailedBeforeBlamesNoTemplate(t *testing.T) {
	unwell := func(w *world) {
		w.agents["a"].healthy = false
		w.report("a")
	}
	ailing := func(r *store.Instance) { r.Ailing = true }
	for name, c := range map[string]struct {
		set    func(*store.Instance)
		change func(*world)
		blames bool
	}{
		"it fails its checks": {nil, unwell, true},
		"it did before":       {ailing, unwell, false},
		"it did before, and is lost": {ailing, func(w *world) {
			w.silence("a", true)
			w.pass(time.Hour)
			w.now = w.now.Add(time.Minute)
		}, true},
	} {
		w := newTestWorld(t)
		w.noGrace = true
		set := []func(*store.Instance){}
		if c.set != nil {
			set = append(set, c.set)
		}
		w.place("a", 0, store.Running, set...)
		c.change(w)
		m := w.drafted().members[0]
		if !m.failing() && !m.dead() {
			t.Fatalf("%s: it does not fail: %+v", name, m.judgment)
		}
		if got := m.blames() != ""; got != c.blames {
			t.Errorf("%s: it blames its template: %t (%s)", name, got, m.judgment.Verdict)
		}
	}
}
