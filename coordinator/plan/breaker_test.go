package plan

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A probe whose outcome is open counts among those that fail: it does not close the breaker while
// the cause lasts. Once an instance in its slot is healthy it no longer counts.
//
// proves ROLL-7
func TestAProbeDoesNotCloseTheBreaker(t *testing.T) {
	for name, c := range map[string]struct {
		probe func(w *world)
		open  bool
	}{
		"it still fails":            {func(w *world) { w.place("p", 0, store.Running); w.turn("p", false) }, true},
		"it is being restarted":     {func(w *world) { w.place("p", 0, store.Stopping) }, true},
		"it is being removed":       {func(w *world) { w.place("p", 0, store.Deleting) }, true},
		"its replacement is made":   {func(w *world) { w.place("q", 0, store.Creating) }, true},
		"its replacement is tested": {func(w *world) { w.place("q", 0, store.Checking) }, true},
		"its slot is empty":         {func(*world) {}, true},
		"its replacement works":     {func(w *world) { w.place("q", 0, store.Running) }, false},
	} {
		w := newTestWorld(t)
		most := store.Amount(5)
		w.edit(func(g *store.Group) { g.Size, g.Heal.MaxUnhealthy = 10, &most })
		for i, id := range []string{"a", "b", "c", "d", "e"} {
			w.place(id, i+1, store.Running)
			w.turn(id, false)
		}
		for i, id := range []string{"f", "g", "h", "i"} {
			w.place(id, i+6, store.Running)
		}
		w.put(w.keys.Slot(w.group, 0), store.Slot{Schema: store.Schema, Group: w.group})
		c.probe(w)
		g := w.spec().Record
		b := store.Breaker{Since: w.now.Add(-time.Hour), Count: 6, Limit: 5, Probe: "p", ProbeSlot: new(0)}
		w.put(w.keys.Status(w.group), store.Status{Schema: store.Schema, Group: w.group, Accepted: &g, Breaker: &b})
		d := w.drafted()
		d.healing.followBreaker()
		if b := d.healing.breaker; (b != nil) != c.open {
			t.Errorf("%s: the breaker is %+v", name, b)
		} else if b != nil && b.Count != 6 {
			t.Errorf("%s: %d count", name, b.Count)
		}
	}
}
