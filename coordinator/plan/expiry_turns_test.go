package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Where instances reach their forced age faster than they are replaced, and there is room for one
// more instance only, a failed one is replaced all the same: after one that was too old.
//
// proves REC-5
func TestForcedExpiryAndHealingTakeTurns(t *testing.T) {
	minute := store.Duration(time.Minute)
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size, g.Budget.MaxExpansion, g.Expiry.ForcedAge = 4, 1, &minute })
	for slot, id := range []string{"a", "b", "c", "d"} {
		w.place(id, slot, store.Running, old(time.Hour))
	}
	w.turn("d", false)
	var order []string
	for range 600 {
		_, done := w.step()
		for i := range done {
			if done[i].Replacement != "" {
				order = append(order, done[i].Rule)
			}
		}
		w.pass(time.Second)
	}
	if first := slices.Index(order, "HEAL-2"); first != 1 {
		t.Errorf("replacements were requested in this order: %q, want EXP-1, then HEAL-2", order)
	}
	if next := w.groupOf(w.group).Status.Record.HealNext; next != "" {
		t.Errorf("%q comes next, though it was replaced", next)
	}
}
