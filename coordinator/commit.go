package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

const (
	commitTimeout = 5 * time.Second
	// overtakenWait is when to plan again after a conflict, if the picture does not show before what overtook us.
	overtakenWait = 200 * time.Millisecond
	// refusedWait is when to try again what etcd refused or did not answer.
	refusedWait = time.Second
)

// carryOut makes actions happen in one transaction that compares our fence, the records it changes and every key
// of its evidence, and writes the journal entries that explain it (REC-15). A conflict is no error: something has
// changed, and the next plan knows it. Whoever shares a transaction with one that was overtaken is tried again without
// it. An error ends the term.
func (t *term) carryOut(ctx context.Context, s *plan.Snapshot, turns plan.Turns, together []*plan.Action) error {
	if together = t.legal(together); len(together) == 0 {
		return nil
	}
	var entries []store.JournalEntry
	for _, a := range together {
		entries = append(entries, entriesOf(s, a)...)
		t.r.deps.Before("commit "+a.Rule, a.Instance)
	}
	conditions, writes := turns.TxnOf(together)
	notes, err := t.goneNotes(ctx, together)
	var rev store.Revision
	if err == nil {
		rev, err = t.commit(ctx, conditions, append(notes, writes...), entries...)
	}
	switch {
	case err == nil:
		t.carriedOut(turns, together, rev)
		for _, e := range entries {
			t.log.Info("decided", "what", e.What, "group", e.Group, "instance", e.Instance, "rule", e.Rule, "why", e.Why, "revision", int64(rev))
		}
		return nil
	case errors.Is(err, errDeposed):
		t.r.deps.Meter.Refused(RefusedFence)
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(together) > 1 && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknown):
		return t.carryOutApart(ctx, s, turns, together, err)
	}
	for _, a := range together {
		t.refused(a, err)
	}
	return nil
}

// goneNotes are the notes of the records that actions delete, on the lease of the journal (SAFE-15).
func (t *term) goneNotes(ctx context.Context, together []*plan.Action) ([]store.Write, error) {
	if !plan.Deletes(together) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	lease, err := t.r.journal.leaseNow(ctx)
	if err != nil {
		return nil, fmt.Errorf("write gone notes: %w", err)
	}
	return plan.GoneWrites(together, lease), nil
}

// carryOutApart tries anew what shared a transaction that etcd did not take: since one was overtaken, or for what it might take of each alone.
func (t *term) carryOutApart(ctx context.Context, s *plan.Snapshot, turns plan.Turns, together []*plan.Action, why error) error {
	var conflict *store.ConflictError
	var changed []string
	if errors.As(why, &conflict) {
		changed = conflict.Keys
	}
	for _, part := range plan.Apart(together, changed) {
		if err := t.carryOut(ctx, s, turns, part); err != nil {
			return err
		}
	}
	return nil
}

// legal leaves out what no phase allows.
func (t *term) legal(together []*plan.Action) []*plan.Action {
	return slices.DeleteFunc(slices.Clone(together), func(a *plan.Action) bool {
		err := validStep(a)
		if err != nil {
			t.log.Error("bug: illegal step planned", "group", a.Group, "instance", a.Instance, "rule", a.Rule, "error", err)
		}
		return err != nil // the step is not made; the term goes on
	})
}

// entriesOf are the entries of the journal that an action leaves.
func entriesOf(s *plan.Snapshot, a *plan.Action) []store.JournalEntry {
	told := a.Told()
	entries := make([]store.JournalEntry, len(told))
	for i, a := range told {
		entries[i] = store.JournalEntry{
			Rule: a.Rule, What: a.What, Why: a.Why, Group: a.Group, Instance: a.Instance, Slot: a.Slot,
			From: a.From, To: a.To, Verdict: a.Verdict, Evidence: a.Evidence, Otherwise: a.Otherwise, Revision: s.Revision,
		}
		if a.From == a.To {
			entries[i].From, entries[i].To = "", ""
		}
	}
	return entries
}

// carriedOut notes that actions have happened.
func (t *term) carriedOut(turns plan.Turns, together []*plan.Action, rev store.Revision) {
	for _, a := range together {
		t.r.deps.Before("committed "+a.Rule, a.Instance)
		turns.Done(a, rev)
		t.evidence.Wrote(a.Group, rev)
		t.meterAction(a)
	}
}

// refused tells of an action that did not happen, and has it planned anew.
func (t *term) refused(a *plan.Action, err error) {
	if errors.Is(err, store.ErrConflict) {
		t.r.deps.Meter.Refused(RefusedConflict)
		t.log.Debug("overtaken", "group", a.Group, "instance", a.Instance, "rule", a.Rule, "error", err)
	} else {
		t.log.Error("etcd refused a decision", "group", a.Group, "instance", a.Instance, "rule", a.Rule, "error", err)
	}
	t.lookAgain(a, waitAfter(err))
}

// waitAfter is how long what could not be written waits, if nothing that happens has it planned before.
func waitAfter(err error) time.Duration {
	if errors.Is(err, store.ErrConflict) {
		return overtakenWait
	}
	return refusedWait
}

// lookAgain has what an action came from planned anew: its group, or the shard, of which an action may name a group too.
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

// commit writes under our fence. A fence that does not hold is errDeposed.
func (t *term) commit(ctx context.Context, conditions []store.Condition, writes []store.Write, entries ...store.JournalEntry) (store.Revision, error) {
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
		t.r.disturbed("etcd takes no writes") // so no agent can have come back to it either
	}
	return rev, err
}

// unique drops conditions that are there twice.
func unique(conditions []store.Condition) []store.Condition {
	out := make([]store.Condition, 0, len(conditions))
	for _, c := range conditions {
		if !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}
