package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// As coordinator/commit.go has them.
const (
	overtakenWait = 200 * time.Millisecond
	refusedWait   = time.Second
	// landsWithin is how much later a transaction may happen whose answer was lost.
	landsWithin = 8 * time.Second
)

// carry carries out the actions of a plan, those that share a transaction each in its time, and
// then queues the calls. Whatever happens in between happens.
func (t *term) carry(s *plan.Snapshot, p *plan.Plan, ready []string, left [][]*plan.Action) {
	if len(left) == 0 {
		t.finish(p, ready)
		return
	}
	t.after(time.Microsecond+t.w.chance.upTo(commitTakes), false, func() {
		if again, goesOn := t.carryOut(s, p, left[0]); goesOn {
			t.carry(s, p, ready, append(again, left[1:]...))
		}
	})
}

func (t *term) finish(p *plan.Plan, ready []string) {
	t.carrying = false
	for _, c := range p.Calls {
		t.ask(c)
	}
	for _, name := range ready {
		t.evidence.LookAgain(name, p.Due[name])
	}
	if t.poked {
		t.poked = false
		t.poke()
		return
	}
	t.planNext()
}

// carryOut makes actions happen in one transaction, or returns those that are to be tried again;
// false if the term ends with it.
func (t *term) carryOut(s *plan.Snapshot, p *plan.Plan, together []*plan.Action) (again [][]*plan.Action, goesOn bool) {
	if together = t.legal(together); len(together) == 0 {
		return nil, true
	}
	for _, a := range together {
		if t.w.chance.happens(t.w.meddles) {
			t.w.meddle(a.Instance)
		}
	}
	conditions, writes := t.turns.TxnOf(together)
	writes = append(plan.GoneWrites(together, 0), writes...)
	if t.w.chance.happens(t.w.lost) {
		// The answer is lost. It happens now, or later if it still may: the leader cannot know.
		t.w.after(pick(t.w.chance.happens(50), 0, t.w.chance.upTo(landsWithin)), func() {
			if t.holds(conditions) {
				_, _ = t.happens(s, p, together, conditions, writes) // nobody hears how it went
			}
		})
		t.lookAgain(together, refusedWait)
		return nil, true
	}
	rev, err := t.happens(s, p, together, conditions, writes)
	var conflict *store.ConflictError
	switch {
	case errors.Is(err, errDeposed):
		t.ended = true
		return nil, false
	case err == nil:
		for _, a := range together {
			t.turns.Done(a, rev)
			t.evidence.Wrote(a.Group, rev)
		}
	case errors.As(err, &conflict) && len(together) > 1:
		return plan.Apart(together, conflict.Keys), true
	case conflict != nil:
		if o := &t.w.cfg.Observer; o.Overtaken != nil {
			o.Overtaken(t.w.Now(), together[0])
		}
		t.lookAgain(together, overtakenWait)
	default:
		t.lookAgain(together, refusedWait)
	}
	return nil, true
}

// legal leaves out what no phase allows, and tells of it.
func (t *term) legal(together []*plan.Action) []*plan.Action {
	return slices.DeleteFunc(slices.Clone(together), func(a *plan.Action) bool {
		if a.From == a.To || a.To == "" {
			return false
		}
		err := store.ValidateTransition(a.From, a.To)
		if err != nil {
			t.w.broken(a.Instance + ": " + err.Error())
		}
		return err != nil
	})
}

// happens commits actions, and tells of them.
func (t *term) happens(s *plan.Snapshot, p *plan.Plan, together []*plan.Action, conditions []store.Condition,
	writes []store.Write,
) (store.Revision, error) {
	o, told := &t.w.cfg.Observer, 0
	whole := o.Committing != nil && t.holds(conditions)
	for _, a := range together {
		told += len(a.Told())
		if whole {
			o.Committing(t.w.Now(), s, p, a)
		}
	}
	rev, err := t.commit(conditions, writes, told)
	if err == nil && o.Committed != nil {
		for _, a := range together {
			o.Committed(t.w.Now(), a, rev)
		}
	}
	return rev, err
}

func pick(first bool, a, b time.Duration) time.Duration {
	if first {
		return a
	}
	return b
}

func (t *term) lookAgain(together []*plan.Action, wait time.Duration) {
	at := t.now().Add(wait)
	for _, a := range together {
		t.evidence.LookAgain(a.Group, at)
	}
	t.evidence.LookAgain("", at)
}

// holds says whether a transaction would happen now.
func (t *term) holds(conditions []store.Condition) bool {
	for _, c := range conditions {
		if !t.w.db.holds(c) {
			return false
		}
	}
	return t.w.db.holds(t.fence) && !t.w.db.down
}

// journalKey begins the keys that stand for entries of the journal: part of a transaction, and kept
// by nobody.
const journalKey = "journal"

var errDeposed = errors.New("another replica leads")

// commit writes under the fence. So many entries of the journal are part of the transaction, as far
// as its size goes.
func (t *term) commit(conditions []store.Condition, writes []store.Write, entries int) (store.Revision, error) {
	txn := store.Txn{Conditions: append(make([]store.Condition, 0, len(conditions)+1), t.fence), Writes: writes}
	for _, c := range conditions {
		if !slices.Contains(txn.Conditions, c) {
			txn.Conditions = append(txn.Conditions, c)
		}
	}
	txn.Writes = slices.Clone(writes)
	for n := range entries {
		txn.Writes = append(txn.Writes, store.Put(fmt.Sprint(journalKey, n), nil))
	}
	rev, err := t.w.commit(txn)
	var conflict *store.ConflictError
	if errors.As(err, &conflict) && slices.Contains(conflict.Keys, t.fence.Key) {
		return 0, errDeposed
	}
	return rev, err
}

// commitHeard is a commit whose answer may be lost, though it has happened.
func (t *term) commitHeard(conditions []store.Condition, writes []store.Write, entries int) (store.Revision, error) {
	rev, err := t.commit(conditions, writes, entries)
	if err == nil && t.w.chance.happens(t.w.lost) {
		return rev, store.ErrUnknown
	}
	return rev, err
}
