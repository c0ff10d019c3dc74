package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

const (
	commitTimeout = 5 * time.Second
	// overtakenWait is when to plan again after a conflict, unless the cache shows the
	// conflicting write before.
	overtakenWait = 200 * time.Millisecond
	// refusedWait is when to retry what etcd refused or did not answer.
	refusedWait = time.Second
)

// carryOut commits actions in one transaction, which compares the fence, the records that change
// and every key of the evidence, and writes the journal entries that explain it (REC-15). A
// conflict is no error: something has changed, and the next plan sees it. Actions that shared a
// transaction with one that conflicted are retried without it. An error ends the term.
func (t *term) carryOut(ctx context.Context, s *plan.Snapshot, turns plan.Turns, batch []*plan.Action) error {
	if batch = t.legal(batch); len(batch) == 0 {
		return nil
	}
	var entries []store.JournalEntry
	for _, a := range batch {
		entries = append(entries, entriesOf(s, a)...)
		t.r.deps.Before("commit "+a.Rule, a.Instance)
	}
	conditions, writes := turns.TxnOf(batch)
	notes, err := t.goneNotes(ctx, batch)
	var rev store.Revision
	if err == nil {
		rev, err = t.commit(ctx, conditions, append(notes, writes...), entries...)
	}
	switch {
	case err == nil:
		t.carriedOut(turns, batch, rev)
		for _, e := range entries {
			t.log.Info("decided", "what", e.What, "group", e.Group, "instance", e.Instance, "rule", e.Rule, "why",
				e.Why, "revision", int64(rev))
		}
		return nil
	case errors.Is(err, errDeposed):
		t.r.deps.Meter.Refused(RefusedFence)
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(batch) > 1 && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknown):
		return t.carryOutApart(ctx, s, turns, batch, err)
	}
	for _, a := range batch {
		t.refused(a, err)
	}
	return nil
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

// carryOutApart retries in parts what shared a transaction that etcd refused, because one action
// conflicted or because etcd may accept them one by one.
func (t *term) carryOutApart(ctx context.Context, s *plan.Snapshot, turns plan.Turns, batch []*plan.Action,
	why error,
) error {
	var conflict *store.ConflictError
	var changed []string
	if errors.As(why, &conflict) {
		changed = conflict.Keys
	}
	for _, part := range plan.Apart(batch, changed) {
		if err := t.carryOut(ctx, s, turns, part); err != nil {
			return err
		}
	}
	return nil
}

// legal drops actions with a transition that no phase allows.
func (t *term) legal(batch []*plan.Action) []*plan.Action {
	return slices.DeleteFunc(slices.Clone(batch), func(a *plan.Action) bool {
		err := validStep(a)
		if err != nil {
			t.log.Error("bug: illegal step planned", "group", a.Group, "instance", a.Instance, "rule", a.Rule, "error",
				err)
		}
		return err != nil // skip the step; the term continues
	})
}

// entriesOf returns the journal entries of an action.
func entriesOf(s *plan.Snapshot, a *plan.Action) []store.JournalEntry {
	told := a.Told()
	entries := make([]store.JournalEntry, len(told))
	for i, a := range told {
		entries[i] = store.JournalEntry{
			Rule: a.Rule, What: a.What, Why: a.Why, Group: a.Group, Instance: a.Instance, Slot: a.Slot,
			From: a.From, To: a.To, Verdict: a.Verdict, Evidence: a.Evidence, Revision: s.Revision,
			Kind: a.Kind, Cause: a.Cause, Replacement: a.Replacement,
			Counterfactual: a.Otherwise, Otherwise: reason.Otherwise(a.Otherwise, ""),
		}
		if a.From == a.To {
			entries[i].From, entries[i].To = "", ""
		}
	}
	return entries
}

// carriedOut records that actions have happened.
func (t *term) carriedOut(turns plan.Turns, batch []*plan.Action, rev store.Revision) {
	for _, a := range batch {
		t.r.deps.Before("committed "+a.Rule, a.Instance)
		turns.Done(a, rev)
		t.evidence.Wrote(a.Group, rev)
		t.meterAction(a)
	}
}

// refused reports an action that did not happen, and schedules another plan.
func (t *term) refused(a *plan.Action, err error) {
	if errors.Is(err, store.ErrConflict) {
		t.r.deps.Meter.Refused(RefusedConflict)
		t.log.Debug("overtaken", "group", a.Group, "instance", a.Instance, "rule", a.Rule, "error", err)
	} else {
		t.log.Error("etcd refused a decision", "group", a.Group, "instance", a.Instance, "rule", a.Rule, "error", err)
	}
	t.lookAgain(a, waitAfter(err))
}

// waitAfter returns how long to wait before planning again what could not be written, unless a
// change triggers a plan before.
func waitAfter(err error) time.Duration {
	if errors.Is(err, store.ErrConflict) {
		return overtakenWait
	}
	return refusedWait
}

// lookAgain schedules another plan of the action's group and of the shard: an action of the shard
// may name a group too.
func (t *term) lookAgain(a *plan.Action, wait time.Duration) {
	at := time.Now().Add(wait)
	t.evidence.LookAgain(a.Group, at)
	t.evidence.LookAgain("", at)
}

func validStep(a *plan.Action) error {
	if a.From == a.To || a.To == "" {
		return nil
	}
	return store.ValidateTransition(a.From, a.To)
}

// commit writes under the fence. It returns errDeposed if the fence does not hold.
func (t *term) commit(ctx context.Context, conditions []store.Condition, writes []store.Write,
	entries ...store.JournalEntry,
) (store.Revision, error) {
	attempt, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	rev, err := t.r.journal.commit(attempt, store.Txn{
		Conditions: append([]store.Condition{t.fence.Condition()}, unique(conditions)...), Writes: writes,
	}, entries...)
	var conflict *store.ConflictError
	if errors.As(err, &conflict) && slices.Contains(conflict.Keys, t.fence.Key) {
		return 0, errDeposed
	}
	if ctx.Err() == nil && (errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown)) {
		t.r.disturbed("etcd takes no writes") // agents could not return either
	}
	return rev, err
}

// unique drops duplicate conditions.
func unique(conditions []store.Condition) []store.Condition {
	out := make([]store.Condition, 0, len(conditions))
	for _, c := range conditions {
		if !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}
