package plan

import (
	"slices"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A group whose spot capacity is back returns to it only when nothing else is wrong, and one
// instance at a time. Each of the reasons to wait is enough by itself.
//
// proves SPOT-4
func TestWhatKeepsAGroupOnDemand(t *testing.T) {
	for _, c := range []struct {
		name  string
		edit  func(*world)
		want  bool
		block store.BlockedKind
	}{
		{"nothing", func(*world) {}, true, ""},
		{"an instance fails", func(w *world) { w.turn("b", false) }, false, store.BlockedByUnsettled},
		{"an instance is being made", func(w *world) {
			w.edit(func(g *store.Group) { g.Size = 4 })
			w.place("d", 3, store.Creating)
		}, false, store.BlockedByUnsettled},
		{"another returns", func(w *world) { w.step() }, false, ""},
		{"there may be no more machines than the size", func(w *world) {
			w.edit(func(g *store.Group) { g.Budget.MaxExpansion = 0 })
		}, false, store.BlockedByNoExpansion},
		{"all of them are protected", func(w *world) {
			for _, id := range []string{"a", "b", "c"} {
				w.change(id, func(r *store.Instance) { r.Protected = "a long job" })
			}
		}, false, store.BlockedByProtectedShare},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size, g.Capacity.Spot, g.Budget.MaxExpansion = 3, 100, 2 })
			for i, id := range []string{"a", "b", "c"} {
				w.place(id, i, store.Running, func(r *store.Instance) { r.Spec.Spot, r.Fallback = false, true })
			}
			c.edit(w)
			p := Compute(w.snapshot(), w.now)
			count := 0
			for _, a := range p.Actions {
				if a.Rule == "SPOT-4" && len(a.Writes) > 0 {
					count++
				}
			}
			if want := map[bool]int{true: 1}[c.want]; count != want {
				t.Errorf("%d instances return, want %d", count, want)
			}
			if c.block != "" && !slices.ContainsFunc(w.blockedBy(), func(b store.Blocked) bool {
				return b.Rule == "SPOT-4" && b.Kind == c.block
			}) {
				t.Errorf("blocked: %+v", w.blockedBy())
			}
		})
	}
}
