package plan

import (
	"slices"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A change that takes its turn compares the group's key as the one before left it, and writes it;
// others do not.
//
// proves HEAL-3, SAFE-4
func TestTurnsFollowOneAnother(t *testing.T) {
	keys := store.KeysOf("test")
	s := Snapshot{Keys: keys, Groups: []Group{{Name: "web", Turn: 7}, {Name: "new"}}}
	turns := NewTurns(&s)
	a := Action{
		Group: "web", Instance: "web-0", Rule: "HEAL-2", Turn: true,
		Conditions: []store.Condition{store.Exists("a")}, Writes: []store.Write{store.Put("a", nil)},
	}
	compares := func(a Action, want store.Condition) {
		t.Helper()
		conditions, writes := turns.Txn(&a)
		if !slices.Equal(conditions, append(slices.Clone(a.Conditions), want)) {
			t.Errorf("compares %+v, want %+v besides", conditions, want)
		}
		if len(writes) != 2 || writes[1].Key != keys.Turn(a.Group) || len(a.Writes) != 1 || len(a.Conditions) != 1 {
			t.Errorf("writes %+v", writes)
		}
		rec, err := store.Decode[store.Turn](store.KV{Value: writes[1].Value})
		if err != nil || rec.Record.Instance != a.Instance || rec.Record.Rule != a.Rule {
			t.Errorf("the turn is %+v, %v", rec.Record, err)
		}
	}
	compares(a, store.At(keys.Turn("web"), 7))
	compares(a, store.At(keys.Turn("web"), 7)) // it has not happened yet
	turns.Done(&a, 9)
	compares(a, store.At(keys.Turn("web"), 9))
	other := a
	other.Group = "new"
	compares(other, store.Absent(keys.Turn("new")))
	turns.Done(&other, 10)
	compares(other, store.At(keys.Turn("new"), 10))
	compares(a, store.At(keys.Turn("web"), 9))

	silent := a
	silent.Turn = false
	turns.Done(&silent, 11)
	compares(a, store.At(keys.Turn("web"), 9))
	if conditions, writes := turns.Txn(&silent); len(conditions) != 1 || len(writes) != 1 {
		t.Errorf("one that takes no turn compares %+v and writes %+v", conditions, writes)
	}
}

// What makes, restarts or removes machines takes its turn; the status, verdicts, orders and what
// only follows from the facts does not.
//
// proves HEAL-3
func TestWhoTakesTurns(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 4 })
	w.place("a", 0, store.Running)
	w.kill("a")                    // is buried, its replacement requested
	w.place("b", 1, store.Booting) // registers: goes on to checking
	w.put(w.keys.Alive("b"), store.Alive{Schema: store.Schema, Instance: "b", BootID: "b.1", State: store.StreamOpen})
	w.place("c", 2, store.Stopping, func(r *store.Instance) { // has been restarted: goes on to starting
		r.Restart = &store.Restart{Level: store.RestartMachine, Rule: "HEAL-1", Token: "t", Boot: "c.0"}
	})
	w.put(w.keys.Alive("c"), store.Alive{Schema: store.Schema, Instance: "c", BootID: "c.1", State: store.StreamOpen})
	w.put(w.keys.Request("r"), store.Request{
		Schema: store.Schema, ID: "r", Kind: store.RequestProtect,
		Mode: store.ProtectRemoval, Instance: "b", Group: w.group, By: "ada",
	})
	turns, restarted := map[bool]int{}, false
	for _, a := range Compute(w.snapshot(), w.now).Actions {
		restarted = restarted || a.To == store.Starting
		uses := a.To == store.Deleting || a.To == store.Pending
		turns[a.Turn]++
		if a.Turn != uses {
			t.Errorf("takes a turn %t: %s %s to %s (%s)", a.Turn, a.Instance, a.What(), a.To, a.Rule)
		}
	}
	if turns[true] < 1 || turns[false] < 3 || !restarted {
		t.Errorf("%d actions take turns, %d do not", turns[true], turns[false])
	}
}

// A change in a group with a budget_group compares the key that the changes of all its groups
// write: of two that were planned with room for one, the second fails.
//
// proves REC-18, SAFE-4
func TestGroupsThatShareABudgetTakeTurns(t *testing.T) {
	for _, shared := range []string{"", "shop"} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) {
			g.Size, g.BudgetGroup, g.Budget.MaxExpansion, g.Budget.MaxUnavailable = 2, shared, 0, new(store.Amount(1))
		})
		w.place("a", 0, store.Running)
		w.place("b", 1, store.Running)
		w.turn("b", false)
		s := w.snapshot()
		p, turns, key := Compute(s, w.now), NewTurns(&s), w.keys.Turn(BudgetTurn("shop"))
		down := 0
		for i := range p.Actions {
			a := &p.Actions[i]
			if a.To != store.Deleting {
				continue
			}
			down++
			conditions, writes := turns.Txn(a)
			compared := slices.Contains(conditions, store.Absent(key))
			written := slices.ContainsFunc(writes, func(w store.Write) bool { return w.Key == key && !w.Delete })
			if compared != (shared != "") || written != compared {
				t.Errorf("budget_group %q: compared %t, written %t", shared, compared, written)
			}
			if turns.Done(a, 77); shared != "" {
				if conditions, _ := turns.Txn(a); !slices.Contains(conditions, store.At(key, 77)) {
					t.Errorf("the next one compares %+v", conditions)
				}
			}
		}
		if down != 1 {
			t.Errorf("budget_group %q: %d are taken down, want 1", shared, down)
		}
	}
}
