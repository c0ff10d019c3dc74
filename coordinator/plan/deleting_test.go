package plan

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A machine that its provider cannot remove uses max_expansion for as long as it is there: an
// unhealthy instance waits for its room. The slots of those that died are filled without room, also
// one that had to wait because it flapped.
//
// proves REC-18, HEAL-3
func TestAMachineThatCannotBeRemovedHoldsUpNoHealingOfTheDead(t *testing.T) {
	setUp := func() *world {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size = 2 })
		w.place("stays", 0, store.Deleting, func(r *store.Instance) { r.Called = true })
		w.place("a", 0, store.Running)
		w.see("stays", func(in *Instance) { in.Calls.RetryAt = w.now.Add(time.Hour) }) // its removals fail
		return w
	}
	w := setUp()
	w.place("b", 1, store.Running)
	w.turn("b", false)
	if got := w.briefly(); got != "" {
		t.Errorf("one is unhealthy: planned %q, want nothing", got)
	}
	w = setUp()
	w.place("b", 1, store.Running)
	w.kill("b")
	w.pass(time.Second)
	if got := w.briefly(); got != "DET-4 -b, DET-4 +1" {
		t.Errorf("one died: planned %q, want its replacement", got)
	}
	for _, dead := range []bool{true, false} {
		w = setUp()
		// so that there is no room at all
		w.place("stays-too", 0, store.Deleting, func(r *store.Instance) { r.Called = true })
		w.see("stays-too", func(in *Instance) { in.Calls.RetryAt = w.now.Add(time.Hour) })
		w.put(w.keys.Slot("web", 1), store.Slot{
			Schema: store.Schema, Group: "web", Number: 1,
			Vacated: &store.Vacated{Instance: "b", Dead: dead},
		})
		want := ""
		if dead {
			want = "REC-3 +1"
		}
		if got := w.briefly(); got != want {
			t.Errorf("a slot is empty since its instance left, dead %t: planned %q, want %q", dead, got, want)
		}
	}
}
