package leader

import (
	"errors"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

const (
	// overtakenWait is when to plan again after a conflict, unless the cache shows the
	// conflicting write before.
	overtakenWait = 200 * time.Millisecond
	// RefusedWait is when to retry what etcd refused or did not answer.
	RefusedWait = time.Second
)

// ErrDeposed ends a term: another replica leads.
var ErrDeposed = errors.New("another replica leads: our key in the election is gone")

// Fenced returns a transaction that succeeds only while the fence holds.
func Fenced(fence store.Fence, conditions []store.Condition, writes []store.Write) store.Txn {
	all := []store.Condition{fence.Condition()}
	for _, c := range conditions {
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return store.Txn{Conditions: all, Writes: writes}
}

// Outcome returns what the outcome of a fenced transaction means: ErrDeposed if the fence did not
// hold.
func Outcome(fence store.Fence, err error) error {
	var conflict *store.ConflictError
	if errors.As(err, &conflict) && slices.Contains(conflict.Keys, fence.Key) {
		return ErrDeposed
	}
	return err
}

// waitAfter returns how long to wait before planning again what could not be written, unless a
// change triggers a plan before.
func waitAfter(err error) time.Duration {
	if errors.Is(err, store.ErrConflict) {
		return overtakenWait
	}
	return RefusedWait
}
