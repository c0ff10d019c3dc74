package plan

import (
	"slices"

	"github.com/leasehold/leasehold/store"
)

// How much goes in one transaction at most: well below what etcd takes, the leader's fence and the
// text of the journal included.
const (
	mostInBatch       = 32
	mostTogetherBytes = 512 << 10
	mostEffect        = 100 // bytes of an effect in a journal entry, without its names and texts
	mostOtherwise     = 150 // bytes of a counterfactual as text
	mostFact          = 120 // bytes of a fact in a journal entry, with its text, without what is written twice
)

// Batch puts the actions of a plan into transactions, in their order. Simple ones that follow
// one another share one: ten thousand agents that register at once would else wait for ten thousand
// transactions. All others have one to themselves.
//
// What shares a transaction happens as if one came right after the other: none compares or writes
// what another of them writes.
func Batch(actions []Action) [][]*Action {
	var out [][]*Action
	var last bundle
	for i := range actions {
		a := &actions[i]
		if last.takes(a) {
			out[len(out)-1] = append(out[len(out)-1], a)
			continue
		}
		out = append(out, []*Action{a})
		last = bundle{open: simple(a), written: map[string]bool{}, compared: map[string]bool{}}
		if last.open {
			last.add(a)
		}
	}
	return out
}

// simple actions change one record, which they compare, and nothing else: they make and remove
// nothing, take no instance out of its slot and use no budget. What concerns the shard as a whole
// is not simple.
func simple(a *Action) bool {
	if a.Turn || a.Group == "" || len(a.Writes) != 1 || a.Writes[0].Delete || a.To != "" && !a.To.Fills() {
		return false
	}
	return slices.ContainsFunc(a.Conditions,
		func(c store.Condition) bool { return c.Key == a.Writes[0].Key && c.Modified != 0 })
}

// bundle is a transaction that is being filled.
type bundle struct {
	open              bool // it may hold more than one action
	written, compared map[string]bool
	actions           int
	conditions        int
	writes            int
	bytes             int
}

func (b *bundle) takes(a *Action) bool {
	if !b.open || !simple(a) || b.written[a.Writes[0].Key] || b.compared[a.Writes[0].Key] {
		return false
	}
	if slices.ContainsFunc(a.Conditions, func(c store.Condition) bool { return b.written[c.Key] }) {
		return false
	}
	with := *b
	with.count(a)
	if with.actions > mostInBatch || with.conditions >= store.MaxOps || with.writes > store.MaxOps ||
		with.bytes > mostTogetherBytes {
		return false
	}
	b.add(a)
	return true
}

func (b *bundle) add(a *Action) {
	b.count(a)
	b.written[a.Writes[0].Key] = true
	for _, c := range a.Conditions {
		b.compared[c.Key] = true
	}
}

func (b *bundle) count(a *Action) {
	b.actions++
	for _, c := range a.Conditions {
		b.conditions++
		if c.Created != 0 && c.Modified != 0 {
			b.conditions++
		}
	}
	b.writes += len(a.Writes)
	b.bytes += len(a.Writes[0].Value)
	for _, told := range a.JournalEntries() {
		b.writes++
		b.bytes += mostEffect + 2*len(told.What()) + 2*len(told.Why) + mostOtherwise
		for i := range told.Facts {
			b.bytes += mostFact + 2*(len(told.Facts[i].Name)+len(told.Facts[i].Text))
		}
	}
}

// Split parts actions whose common transaction did not happen because keys had changed. An action
// that compares one of these is tried alone, as one that never shared a transaction, and after the
// others, which go together once more: so no action is held up by another. If none does, each is
// tried alone.
func Split(together []*Action, changed []string) [][]*Action {
	var rest []*Action
	var out [][]*Action
	for _, a := range together {
		if slices.ContainsFunc(a.Conditions, func(c store.Condition) bool { return slices.Contains(changed, c.Key) }) {
			out = append(out, []*Action{a})
		} else {
			rest = append(rest, a)
		}
	}
	switch {
	case len(rest) == 0:
		return out
	case len(out) > 0:
		return append([][]*Action{rest}, out...)
	}
	for _, a := range rest {
		out = append(out, []*Action{a})
	}
	return out
}
