package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

const commitTimeout = 5 * time.Second

// carryOut commits actions in one transaction, with the journal entries that explain it (REC-15).
func (t *term) carryOut(ctx context.Context, c leader.Commit) leader.Committed {
	var entries []store.JournalEntry
	for _, a := range c.Actions {
		entries = append(entries, entriesOf(c.Snapshot, a)...)
		t.r.deps.Before("commit "+a.Rule, a.Instance)
	}
	notes, err := t.goneNotes(ctx, c.Actions)
	if err == nil {
		var tokens []store.Write
		tokens, err = t.grantTokens(ctx, c.Actions)
		notes = append(notes, tokens...)
	}
	var rev store.Revision
	if err == nil {
		rev, err = t.commit(ctx, c.Conditions, append(notes, c.Writes...), entries...)
	}
	switch {
	case err == nil:
		for _, a := range c.Actions {
			t.r.deps.Before("committed "+a.Rule, a.Instance)
			t.meterAction(a)
		}
		for _, e := range entries {
			t.log.Info("decided", "what", e.What, "group", e.Group, "instance", e.Instance, "rule", e.Rule, "why",
				e.Why, "revision", int64(rev))
		}
	case errors.Is(err, leader.ErrDeposed):
		t.r.deps.Meter.Refused(RefusedFence)
	case errors.Is(err, store.ErrDenied):
		t.r.disturbed("etcd denies writes") // also the gateways', so agents could not return either
	}
	return leader.Committed{Revision: rev, Err: err}
}

// goneNotes returns the notes for the records that actions delete, on the journal's lease
// (SAFE-15).
func (t *term) goneNotes(ctx context.Context, batch []*plan.Action) ([]store.Write, error) {
	if !plan.Deletes(batch) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	lease, err := t.r.journal.leaseNow(ctx)
	if err != nil {
		return nil, fmt.Errorf("write gone notes: %w", err)
	}
	return plan.GoneWrites(batch, lease), nil
}

// entriesOf returns the journal entries of an action.
func entriesOf(s *plan.Snapshot, a *plan.Action) []store.JournalEntry {
	journaled := a.JournalEntries()
	entries := make([]store.JournalEntry, len(journaled))
	for i, a := range journaled {
		entries[i] = store.JournalEntry{
			Rule: a.Rule, What: a.What(), Effect: a.Effect, Why: a.Why, Group: a.Group, Instance: a.Instance, Slot: a.Slot,
			From: a.From, To: a.To, Verdict: a.Verdict, Facts: a.Facts, Revision: s.Revision,
			Kind: a.Kind, Cause: a.Cause, Replacement: a.Replacement,
			Counterfactual: a.Counterfactual, Otherwise: reason.Otherwise(a.Counterfactual, ""),
		}
		if a.From == a.To {
			entries[i].From, entries[i].To = "", ""
		}
	}
	return entries
}

// refused reports an action that did not happen.
func (t *term) refused(a *plan.Action, err error) {
	if errors.Is(err, store.ErrConflict) {
		t.r.deps.Meter.Refused(RefusedConflict)
		t.log.Debug("overtaken", "group", a.Group, "instance", a.Instance, "rule", a.Rule, "error", err)
		return
	}
	t.log.Error("etcd refused a decision", "group", a.Group, "instance", a.Instance, "rule", a.Rule, "error", err)
}

// commit writes under the fence. It returns leader.ErrDeposed if the fence does not hold.
func (t *term) commit(ctx context.Context, conditions []store.Condition, writes []store.Write,
	entries ...store.JournalEntry,
) (store.Revision, error) {
	attempt, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	rev, err := t.r.journal.commit(attempt, leader.Fenced(t.fence, conditions, writes), entries...)
	if ctx.Err() == nil && (errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown)) {
		t.r.disturbed("etcd takes no writes") // agents could not return either
	}
	return rev, leader.Outcome(t.fence, err)
}
