package plan

import (
	"slices"

	"github.com/leasehold/leasehold/store"
)

// Turns puts the changes of a group that use its budgets in a row: each compares the key
// turns/<group> as the one before left it, and writes it. So a transaction whose answer was lost,
// and which etcd carries out only after we have decided something else, comes too late: two changes
// that each thought to have the budget for itself cannot both happen.
type Turns struct {
	keys store.Keys
	last map[string]store.Revision
}

// NewTurns begins the row at what a snapshot shows.
func NewTurns(s *Snapshot) Turns {
	t := Turns{keys: s.Keys, last: make(map[string]store.Revision, len(s.Groups))}
	for i := range s.Groups {
		t.last[s.Groups[i].Name] = s.Groups[i].Turn
	}
	return t
}

// Txn is what an action compares and writes, with its turn if it takes one.
func (t Turns) Txn(a *Action) ([]store.Condition, []store.Write) {
	if !a.Turn {
		return a.Conditions, a.Writes
	}
	key := t.keys.Turn(a.Group)
	turn := store.Turn{Schema: store.Schema, Rule: a.Rule, Instance: a.Instance}
	return append(slices.Clone(a.Conditions), store.At(key, t.last[a.Group])),
		append(slices.Clone(a.Writes), store.Put(key, store.Encode(turn)))
}

// TxnOf is what actions compare and write that share a transaction.
func (t Turns) TxnOf(together []*Action) (conditions []store.Condition, writes []store.Write) {
	for _, a := range together {
		c, w := t.Txn(a)
		conditions, writes = append(conditions, c...), append(writes, w...)
	}
	return conditions, writes
}

// Done notes that an action has happened.
func (t Turns) Done(a *Action, rev store.Revision) {
	if a.Turn {
		t.last[a.Group] = rev
	}
}

// takeTurns marks the actions that use a budget: those that compare the shard, as all do that make,
// restart or remove a machine.
func (d *draft) takeTurns() {
	for i := range d.actions {
		a := &d.actions[i]
		a.Turn = slices.Contains(a.Conditions, d.s.Shard.Unchanged()) &&
			!slices.ContainsFunc(a.Writes, func(w store.Write) bool { return w.Delete && w.Key == d.specKey() })
	}
}
