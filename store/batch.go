package store

import (
	"context"
	"errors"
	"fmt"
)

// BatchPart is one transaction of a batch, and its result.
type BatchPart struct {
	Txn Txn

	Revision Revision
	Err      error
}

// CommitBatch commits transactions that do not depend on each other, as one where that is possible:
// a store takes many far more cheaply that way. It sets each part's result as if the part had been
// committed alone: a part whose conditions do not hold, or that the store refuses, keeps no other
// from being written. No two parts may write the same key, and together they must fit into a
// transaction.
func CommitBatch(ctx context.Context, st Store, parts []*BatchPart) {
	for len(parts) > 0 {
		var all Txn
		for _, p := range parts {
			all.Conditions = append(all.Conditions, p.Txn.Conditions...)
			all.Writes = append(all.Writes, p.Txn.Writes...)
		}
		rev, err := st.Commit(ctx, all)
		var conflict *ConflictError
		switch {
		case err == nil || len(parts) == 1:
		case errors.As(err, &conflict):
			if rest := withoutStale(parts, conflict.Keys); len(rest) < len(parts) {
				parts = rest
				continue
			}
		case concernsOnePart(err):
			CommitBatch(ctx, st, parts[:len(parts)/2])
			CommitBatch(ctx, st, parts[len(parts)/2:])
			return
		}
		for _, p := range parts {
			p.Revision, p.Err = rev, err
		}
		return
	}
}

// concernsOnePart reports whether the store may have refused a batch for one of its parts, such as
// one on a lease that has ended: it does not say for which. All other errors would meet each part
// alone as well.
func concernsOnePart(err error) bool {
	return !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrDenied)
}

// withoutStale sets the conflict of each part that compares a stale key, and returns the other
// parts.
func withoutStale(parts []*BatchPart, stale []string) (rest []*BatchPart) {
	is := make(map[string]bool, len(stale))
	for _, key := range stale {
		is[key] = true
	}
	for _, p := range parts {
		var own []string
		for _, c := range p.Txn.Conditions {
			if is[c.Key] {
				own = append(own, c.Key)
			}
		}
		if len(own) == 0 {
			rest = append(rest, p)
			continue
		}
		p.Err = fmt.Errorf("commit: %w", &ConflictError{Keys: own})
	}
	return rest
}
