package plan

import (
	"slices"

	"github.com/leasehold/leasehold/store"
)

// Limits of one transaction: well below what etcd accepts, including the leader's fence and the
// text of the journal.
const (
	maxInBatch       = 32
	maxTogetherBytes = 512 << 10
	maxEffect        = 100 // bytes of an effect in a journal entry, without its names and texts
	maxOtherwise     = 150 // bytes of a counterfactual as text
	maxFact          = 120 // bytes of a fact in a journal entry, with its text, without duplicated parts
)

// Batch groups the actions of a plan into transactions, in their order. Consecutive simple actions
// share one: otherwise ten thousand agents that register at once would wait for ten thousand
// transactions. Every other action has its own transaction.
//
// Actions that share a transaction must be independent: none compares or writes what another one
// writes.
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

// simple actions change one record, which they compare, and nothing else: they create and remove
// nothing, take no instance out of its slot and use no budget. Actions on the shard as a whole are
// not simple.
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
	if with.actions > maxInBatch || with.conditions >= store.MaxOps || with.writes > store.MaxOps ||
		with.bytes > maxTogetherBytes {
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
	for _, entry := range a.JournalEntries() {
		b.writes++
		b.bytes += maxEffect + 2*len(entry.What()) + 2*len(entry.Why) + maxOtherwise
		for i := range entry.Facts {
			b.bytes += maxFact + 2*(len(entry.Facts[i].Name)+len(entry.Facts[i].Text))
		}
	}
}

// Split separates actions whose shared transaction failed because keys had changed. An action that
// compares a changed key is tried alone, and after the others, which share a transaction again: so
// no action delays another. If no action compares a changed key, each is tried alone.
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
