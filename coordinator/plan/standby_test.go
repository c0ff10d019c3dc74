package plan

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

// There is no machine on standby: a group has as many as it wants, each in a slot, and makes
// another one when it is needed, not before.
//
// proves WARM-1
func TestEachMachineIsMadeWhenItIsNeeded(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*world)
		want int // machines that are made
	}{
		{"all are healthy", func(*world) {}, 0},
		{"much room", func(w *world) { w.edit(func(g *store.Group) { g.Budget.MaxExpansion = 10 }) }, 0},
		{"it grows", func(w *world) { w.edit(func(g *store.Group) { g.Size = 5 }) }, 2},
		{"one has failed", func(w *world) { w.turn("a", false) }, 1},
		{"one is dead", func(w *world) { w.kill("a") }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size = 3 })
			for slot, id := range []string{"a", "b", "c"} {
				w.place(id, slot, store.Running)
			}
			c.do(w)
			w.pass(0)
			w.step()
			made := 0
			for _, in := range w.instances() {
				switch in.Record.ID {
				case "a", "b", "c":
				default:
					made++
				}
				if in.Record.Slot < 0 || !in.Record.Managed {
					t.Errorf("%s is in no slot", in.Record.ID)
				}
			}
			if made != c.want {
				t.Errorf("%d are made, want %d", made, c.want)
			}
		})
	}
}
