package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// replacements runs the world for a time, and returns what was replaced, in order.
func (w *world) replacements(during time.Duration) (order []string) {
	for end := w.now.Add(during); w.now.Before(end); w.pass(time.Second) {
		_, done := w.step()
		for i := range done {
			if done[i].Replacement != "" {
				order = append(order, done[i].Rule+" "+done[i].Instance)
			}
		}
	}
	return order
}

// Where instances reach their forced age faster than they are replaced, and there is room for one
// more instance only, others that have to be replaced are replaced all the same: each after one
// that was too old.
//
// proves REC-5
func TestForcedExpiryAndHealingAlternate(t *testing.T) {
	for name, c := range map[string]struct {
		place func(w *world, id string, slot int)
		rule  string
	}{
		"failed": {func(w *world, id string, slot int) { w.place(id, slot, store.Running); w.turn(id, false) }, "HEAL-2"},
		"ordered to go": {
			func(w *world, id string, slot int) { w.place(id, slot, store.Running, condemned(false)) }, "REC-16",
		},
		"evacuated": {func(w *world, id string, slot int) {
			w.place(id, slot, store.Running, zone("b"))
			w.evacuate("b")
		}, "DRAIN-3"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestWorld(t)
			minute := store.Duration(time.Minute)
			w.edit(func(g *store.Group) { g.Size, g.Budget.MaxExpansion, g.Expiry.ForcedAge = 12, 1, &minute })
			for slot := range 10 {
				w.place(string(rune('a'+slot)), slot, store.Running, old(time.Hour))
			}
			c.place(w, "x", 10)
			c.place(w, "y", 11)
			order := w.replacements(10 * time.Minute)
			x, y := slices.Index(order, c.rule+" x"), slices.Index(order, c.rule+" y")
			if x != 1 || y != 3 {
				t.Errorf("replaced in this order: %q, want x second and y fourth", order)
			}
			if next := w.groupOf(w.group).Status.Record.HealNext; next != "" {
				t.Errorf("%q comes next, though it was replaced", next)
			}
		})
	}
}

// The one that forced expiry went before comes before others that have to be replaced, also before
// those in lower slots.
//
// proves REC-5
func TestWhatForcedExpiryWentBeforeIsNext(t *testing.T) {
	w := newTestWorld(t)
	hour := store.Duration(time.Hour)
	w.edit(func(g *store.Group) { g.Size, g.Budget.MaxExpansion, g.Expiry.ForcedAge = 4, 1, &hour })
	w.place("a", 0, store.Running, condemned(false))
	w.place("b", 1, store.Running, condemned(false))
	w.place("c", 2, store.Running, old(2*time.Hour))
	w.place("d", 3, store.Running)
	w.turn("d", false)
	w.put(w.keys.Status(w.group), store.Status{Schema: store.Schema, Group: w.group, HealNext: "d"})
	order := w.replacements(10 * time.Minute)
	if want := []string{"HEAL-2 d", "EXP-1 c", "REC-16 a", "REC-16 b"}; !slices.Equal(order, want) {
		t.Errorf("replaced in this order: %q, want %q", order, want)
	}
}

// Forced expiry does not wait for a failed instance whose room is in use by something else, for
// however long that is.
//
// proves REC-5
func TestForcedExpiryWaitsForNoOtherWork(t *testing.T) {
	w := newTestWorld(t)
	minute := store.Duration(time.Minute)
	w.edit(func(g *store.Group) {
		g.Size, g.Budget.MaxExpansion, g.Expiry.ForcedAge = 4, 3, &minute
		g.Budget.Heal.MaxExpansion = new(store.Amount(1))
	})
	w.place("p", 3, store.Running, func(r *store.Instance) { r.Protected = store.ProtectHeal })
	w.place("q", 3, store.Running, replaces("p")) // and p stays beside it
	w.turn("p", false)
	w.place("a", 0, store.Running, old(time.Hour))
	w.place("b", 1, store.Running, old(time.Hour))
	w.place("x", 2, store.Running, old(time.Hour))
	w.turn("x", false)
	if order := w.replacements(10 * time.Minute); len(order) < 10 {
		t.Errorf("replaced in ten minutes: %q, want a and b again and again", order)
	}
}

// What forced expiry would begin in a damaged slot does not happen: nothing comes next for that,
// and the status is not written again and again.
//
// proves REC-5, SAFE-15
func TestExpiryOfADamagedSlotPostponesNothing(t *testing.T) {
	w := newTestWorld(t)
	hour := store.Duration(time.Hour)
	w.edit(func(g *store.Group) { g.Size, g.Budget.MaxExpansion, g.Expiry.ForcedAge = 4, 3, &hour })
	w.place("a", 0, store.Running, old(3*time.Hour))
	for slot, id := range []string{"x", "c", "d"} {
		w.place(id, slot+1, store.Running)
	}
	w.turn("x", false)
	w.pass(0)
	s := w.snapshot()
	for slot, id := range []string{"web-0-b", "web-1-c"} {
		lost := lostSlot(w, id, slot, 7)
		lost.What = store.DamageUnreadable
		s.Groups[0].Damaged = append(s.Groups[0].Damaged, lost)
	}
	s.Shard.Record.Reviewed = &store.Reviewed{Seen: 100000, Damage: 2}
	p := Compute(s, w.now)
	i := slices.IndexFunc(p.Actions, func(a Action) bool {
		return slices.ContainsFunc(a.Writes, func(op store.Write) bool { return op.Key == w.keys.Status(w.group) })
	})
	if i < 0 || len(p.Actions) != 1 {
		t.Fatalf("%d actions, want the status alone", len(p.Actions))
	}
	st, err := store.Decode[store.Status](store.KV{Value: p.Actions[i].Writes[0].Value, Modified: 1})
	if err != nil {
		t.Fatal(err)
	}
	if st.Record.HealNext != "" {
		t.Errorf("%s comes next, though expiry began nothing", st.Record.HealNext)
	}
}
