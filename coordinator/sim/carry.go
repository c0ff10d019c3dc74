package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// landsWithin is the longest delay of a transaction whose answer was lost.
const landsWithin = 8 * time.Second

// perform carries out a command of the leader, as coordinator/perform.go does.
func (t *term) perform(c leader.Command) {
	o := &t.w.cfg.Observer
	switch c := c.(type) {
	case leader.Recall:
		t.step(leader.Recalled{}) // this etcd keeps no history
	case leader.Compute:
		t.step(leader.Planned{Plan: t.compute(c)})
	case leader.Commit:
		t.after(time.Microsecond+t.w.chance.upTo(commitTakes), false, func() { t.step(t.carryOut(c)) })
	case leader.List:
		l := t.w.cloud(c.Provider).List(shardID)
		t.w.routinely(l.Takes, func() {
			t.after(0, true, func() {
				t.step(leader.Listed{Provider: c.Provider, Begun: c.Begun, Machines: l.Machines, Err: l.Err})
			})
		})
	case leader.Record:
		t.record(c)
	case leader.Verify:
		var err error
		if !t.satisfies(c.Conditions) {
			err = store.ErrConflict
		}
		t.step(leader.Verified{Operation: c.Operation, Err: err})
	case leader.Invoke:
		t.invoke(c)
	case leader.ListMembers:
		t.listMembers(c)
	case leader.CallMember:
		t.callMember(c)
	case leader.Query:
		t.after(100*time.Millisecond, true, func() {
			value, err := t.w.cfg.Sources[c.Key.Source](t.w, c.Key.Group)
			t.step(leader.Queried{Key: c.Key, Begun: c.Begun, Value: value, Err: err})
		})
	case leader.Refused:
		if errors.Is(c.Err, store.ErrConflict) && o.Overtaken != nil {
			o.Overtaken(t.w.Now(), c.Action)
		}
	case leader.Illegal:
		t.w.broken(c.Action.Instance + ": " + c.Err.Error())
	case leader.Resign:
		t.ended = true
		if t.w.leader == t {
			t.w.leader = nil
			t.w.elect(10 * time.Millisecond)
		}
	}
}

// carryOut carries out actions in one transaction.
func (t *term) carryOut(c leader.Commit) leader.Committed {
	for _, a := range c.Actions {
		if t.w.chance.happens(t.w.interferes) {
			t.w.interfere(a.Instance)
		}
	}
	writes := append(plan.GoneWrites(c.Actions, 0), c.Writes...)
	if t.w.chance.happens(t.w.lost) {
		// The answer is lost. The transaction takes effect now, or later if it still can: the
		// leader cannot know.
		t.w.after(pick(t.w.chance.happens(50), 0, t.w.chance.upTo(landsWithin)), func() {
			if t.satisfies(c.Conditions) {
				_, _ = t.happens(c.Snapshot, c.Plan, c.Actions, c.Conditions, writes) // its outcome is never learned
			}
		})
		return leader.Committed{Err: store.ErrUnknown}
	}
	rev, err := t.happens(c.Snapshot, c.Plan, c.Actions, c.Conditions, writes)
	return leader.Committed{Revision: rev, Err: err}
}

// happens commits actions and reports them to the observer.
func (t *term) happens(s *plan.Snapshot, p *plan.Plan, together []*plan.Action, conditions []store.Condition,
	writes []store.Write,
) (store.Revision, error) {
	o, entries := &t.w.cfg.Observer, 0
	whole := o.Committing != nil && t.satisfies(conditions)
	for _, a := range together {
		entries += len(a.JournalEntries())
		if whole {
			o.Committing(t.w.Now(), s, p, a)
		}
	}
	rev, err := t.commit(conditions, writes, entries, statusesOf(together))
	if err == nil && o.Committed != nil {
		for _, a := range together {
			o.Committed(t.w.Now(), a, rev)
		}
	}
	return rev, err
}

func pick[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

// satisfies reports whether a transaction's conditions hold now.
func (t *term) satisfies(conditions []store.Condition) bool {
	for _, c := range conditions {
		if !t.w.db.satisfies(c) {
			return false
		}
	}
	return t.w.db.satisfies(t.fence.Condition()) && !t.w.db.down
}

// journalKey is the prefix of keys that represent journal entries: part of a transaction, but not
// stored.
const journalKey = "journal"

// statusesOf returns the statuses that actions write without a value, by key.
func statusesOf(actions []*plan.Action) map[string]*store.Status {
	var all map[string]*store.Status
	for _, a := range actions {
		if a.Status == nil || a.Writes[0].Value != nil {
			continue
		}
		if all == nil {
			all = map[string]*store.Status{}
		}
		all[a.Writes[0].Key] = a.Status
	}
	return all
}

// commit writes under the fence. entries is the number of journal entries that count towards the
// transaction's size.
func (t *term) commit(conditions []store.Condition, writes []store.Write, entries int,
	statuses map[string]*store.Status,
) (store.Revision, error) {
	txn := leader.Fenced(t.fence, conditions, slices.Clone(writes))
	for n := range entries {
		txn.Writes = append(txn.Writes, store.Put(fmt.Sprint(journalKey, n), nil))
	}
	rev, err := t.w.commit(txn, statuses)
	return rev, leader.Outcome(t.fence, err)
}

// commitHeard is a commit whose answer may be lost although it took effect.
func (t *term) commitHeard(conditions []store.Condition, writes []store.Write, entries int) (store.Revision, error) {
	rev, err := t.commit(conditions, writes, entries, nil)
	if err == nil && t.w.chance.happens(t.w.lost) {
		return rev, store.ErrUnknown
	}
	return rev, err
}
