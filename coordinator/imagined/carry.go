package imagined

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

// carry carries out the actions of a plan from the given one on, each in its time, and then queues the calls. Whatever
// happens in between happens.
func (t *tenure) carry(s *plan.Snapshot, p *plan.Plan, ready []string, next int) {
	if next == 0 {
		t.turns = plan.NewTurns(s)
	}
	if next == len(p.Actions) {
		t.finish(p, ready)
		return
	}
	t.carrying = true
	t.after(time.Microsecond+t.w.chance.upTo(commitTakes), false, func() {
		if t.carryOut(s, p, &p.Actions[next]) {
			t.carry(s, p, ready, next+1)
		}
	})
}

func (t *tenure) finish(p *plan.Plan, ready []string) {
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

// carryOut makes an action happen as one transaction; false if the tenure ends with it.
func (t *tenure) carryOut(s *plan.Snapshot, p *plan.Plan, a *plan.Action) bool {
	if a.From != a.To && a.To != "" {
		if err := store.ValidateTransition(a.From, a.To); err != nil {
			t.w.broken(a.Instance + ": " + err.Error())
			return true
		}
	}
	if t.w.chance.happens(t.w.meddles) {
		t.w.meddle(a.Instance)
	}
	o := &t.w.cfg.Observer
	conditions, writes := t.turns.Txn(a)
	if t.w.chance.happens(t.w.lost) {
		// The answer is lost. It happens now, or later if it still may: the leader cannot know.
		t.w.after(pick(t.w.chance.happens(50), 0, t.w.chance.upTo(landsWithin)), func() {
			if t.holds(conditions) {
				_, _ = t.happens(s, p, a, conditions, writes) // nobody hears how it went
			}
		})
		t.lookAgain(a, refusedWait)
		return true
	}
	rev, err := t.happens(s, p, a, conditions, writes)
	switch {
	case errors.Is(err, errDeposed):
		t.ended = true
		return false
	case err == nil:
		t.turns.Done(a, rev)
		t.evidence.Wrote(a.Group, rev)
	case errors.Is(err, store.ErrConflict):
		if o.Overtaken != nil {
			o.Overtaken(t.w.Now(), a)
		}
		t.lookAgain(a, overtakenWait)
	default:
		t.lookAgain(a, refusedWait)
	}
	return true
}

// happens commits an action, and tells of it.
func (t *tenure) happens(s *plan.Snapshot, p *plan.Plan, a *plan.Action, conditions []store.Condition, writes []store.Write) (store.Revision, error) {
	o := &t.w.cfg.Observer
	if o.Committing != nil && t.holds(conditions) {
		o.Committing(t.w.Now(), s, p, a)
	}
	rev, err := t.commit(conditions, writes, len(a.Told()))
	if err == nil && o.Committed != nil {
		o.Committed(t.w.Now(), a, rev)
	}
	return rev, err
}

func pick(first bool, a, b time.Duration) time.Duration {
	if first {
		return a
	}
	return b
}

func (t *tenure) lookAgain(a *plan.Action, wait time.Duration) {
	at := t.now().Add(wait)
	t.evidence.LookAgain(a.Group, at)
	t.evidence.LookAgain("", at)
}

// holds says whether an action would happen now.
func (t *tenure) holds(conditions []store.Condition) bool {
	for _, c := range conditions {
		if !t.w.db.holds(c) {
			return false
		}
	}
	return t.w.db.holds(t.fence) && !t.w.db.down
}

// journalKey begins the keys that stand for entries of the journal: part of a transaction, and kept by nobody.
const journalKey = "journal"

var errDeposed = errors.New("another replica leads")

// commit writes under the fence. So many entries of the journal are part of the transaction, as far as its size goes.
func (t *tenure) commit(conditions []store.Condition, writes []store.Write, entries int) (store.Revision, error) {
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
func (t *tenure) commitHeard(conditions []store.Condition, writes []store.Write, entries int) (store.Revision, error) {
	rev, err := t.commit(conditions, writes, entries)
	if err == nil && t.w.chance.happens(t.w.lost) {
		return rev, store.ErrUnknown
	}
	return rev, err
}
