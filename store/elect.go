package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Fence is what a leader holds: its key in the election, as created at one revision. The replica
// that wins later has a key created later, so a transaction with the fence's condition cannot
// succeed for a deposed leader (SAFE-7).
type Fence struct {
	Key     string
	Created Revision
}

// Condition holds while the key exists with which the fence's owner won: while the owner leads, or
// is the next to lead and does not know it yet.
func (f Fence) Condition() Condition { return CreatedAt(f.Key, f.Created) }

// Resign gives up the leadership of the fence. It is no error if that has ended already.
func (f Fence) Resign(ctx context.Context, s Store) error {
	_, err := s.Commit(ctx, Txn{Conditions: []Condition{f.Condition()}, Writes: []Write{Delete(f.Key)}})
	if err != nil && !errors.Is(err, ErrConflict) {
		return fmt.Errorf("resign leadership: %w", err)
	}
	return nil
}

// LeaderNow returns the present leader of the keys below leader/: the key that was created first.
func LeaderNow(kvs []KV) (KV, bool) {
	var first KV
	for _, kv := range kvs {
		if first.Key == "" || kv.Created < first.Created || kv.Created == first.Created && kv.Key < first.Key {
			first = kv
		}
	}
	return first, first.Key != ""
}

// The times of an election.
const (
	electRetryFirst = 50 * time.Millisecond
	maxElectRetry   = time.Second
	electAttempt    = 5 * time.Second // one call to the store
	withdrawWait    = time.Second
)

// Elect creates a candidate's key on the lease, and returns when it has won: a read that began
// after the creation found no older key below leader/. It is etcd's own election, with the same
// keys in the same order, so etcdctl elect can be used beside it.
//
// The lease must be renewed by the caller (see [Sessions.Run]), whose ctx should end with it. If
// the lease ends all the same, Elect fails with ErrLeaseGone. A store that is out of reach, a lost
// answer, a compaction or a deleted key of ours is not the end: Elect reads again and, where it
// must, creates its key again, as the newest. A key that this lease already has from an earlier
// election is replaced, so that no fence is used twice.
//
// When ctx ends, or on an error, Elect removes its key as far as it can.
func Elect(ctx context.Context, s Store, keys Keys, lease Lease, value Leader) (Fence, error) {
	c := candidate{
		store: s,
		line:  keys.Of(KindLeader),
		key:   keys.Leader(lease.ID),
		lease: lease.ID,
		value: Encode(value),
	}
	fence, err := c.run(ctx)
	if err != nil {
		c.withdraw(ctx)
		return Fence{}, fmt.Errorf("stand for election: %w", err)
	}
	return fence, nil
}

// candidate takes part in an election.
type candidate struct {
	store Store
	line  string // the prefix of all candidates' keys
	key   string
	lease LeaseID
	value []byte
	stood bool // whether we ever asked for our key: what is there before that is not of this election
}

func (c *candidate) run(ctx context.Context) (Fence, error) {
	retry := backoff{first: electRetryFirst, most: maxElectRetry}
	for {
		created, err := c.stand(ctx)
		if err == nil {
			var waited bool
			if waited, err = c.await(ctx, created); err == nil && !waited {
				return Fence{Key: c.key, Created: created}, nil
			}
		}
		switch {
		case ctx.Err() != nil:
			return Fence{}, context.Cause(ctx)
		case err == nil: // a candidate left: look again
			retry.reset()
			continue
		case !repeatable(err):
			return Fence{}, err
		}
		if retry.wait(ctx) != nil {
			return Fence{}, context.Cause(ctx)
		}
	}
}

// stand makes sure that our key exists, and returns the revision at which it was created.
func (c *candidate) stand(ctx context.Context) (Revision, error) {
	ctx, cancel := context.WithTimeout(ctx, electAttempt)
	defer cancel()
	kv, err := c.store.Get(ctx, c.key)
	switch {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		return 0, err
	case c.stood && kv.Lease == c.lease:
		return kv.Created, nil // ours, even if its answer was lost
	default: // of an earlier election, or touched by hand and no longer on the lease: it would outlive us
		if _, err := c.store.Commit(ctx, Txn{
			Conditions: []Condition{Unchanged(kv)},
			Writes:     []Write{Delete(c.key)},
		}); err != nil {
			return 0, asWrite(err)
		}
	}
	c.stood = true
	rev, err := c.store.Commit(ctx, Txn{
		Conditions: []Condition{Absent(c.key)},
		Writes:     []Write{PutLeased(c.key, c.value, c.lease)},
	})
	if err != nil {
		return 0, asWrite(err) // if it happened all the same, the next Get finds it
	}
	return rev, nil
}

// await returns false if we lead. Otherwise it waits until a candidate has left, and returns
// true.
func (c *candidate) await(ctx context.Context, created Revision) (waited bool, err error) {
	attempt, cancel := context.WithTimeout(ctx, electAttempt)
	line, err := c.store.List(attempt, c.line, 0)
	cancel()
	if err != nil {
		return false, err
	}
	if !c.stands(line.KVs, created) {
		return true, nil // our key is gone, another, or off the lease: stand again
	}
	if first, _ := LeaderNow(line.KVs); first.Key == c.key {
		return false, nil
	}

	err = Changes(ctx, c.store, c.line, line.Revision+1, func(b Batch) error {
		if slices.ContainsFunc(b.Events, func(e Event) bool { return e.Deleted }) {
			return errLineMoved
		}
		return nil
	})
	if errors.Is(err, errLineMoved) {
		return true, nil
	}
	return false, err
}

func (c *candidate) stands(line []KV, created Revision) bool {
	for _, kv := range line {
		if kv.Key == c.key {
			return kv.Created == created && kv.Lease == c.lease
		}
	}
	return false
}

// withdraw removes our key. No other client writes it, as it is named after our lease, so there is
// no condition.
func (c *candidate) withdraw(ctx context.Context) {
	if !c.stood {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawWait)
	defer cancel()
	_, _ = c.store.Commit(ctx, Txn{Writes: []Write{Delete(c.key)}}) // if it fails, the key goes with its lease
}

// errLineMoved ends the watch of the candidates: one of them has left.
var errLineMoved = errors.New("a candidate has left")

// errOutcome marks a failed write whose outcome is unknown.
var errOutcome = errors.New("outcome to be read")

// asWrite marks the error of a write: anything but a refusal can be cleared up by reading.
func asWrite(err error) error {
	if errors.Is(err, ErrLeaseGone) || errors.Is(err, ErrDenied) {
		return err
	}
	return fmt.Errorf("%w: %w", errOutcome, err)
}

// repeatable reports whether trying again can help.
func repeatable(err error) bool {
	for _, again := range []error{
		errOutcome, ErrUnavailable, ErrUnknown, ErrConflict, ErrCompacted, errSilent, errEnded,
		context.DeadlineExceeded,
	} {
		if errors.Is(err, again) {
			return true
		}
	}
	return false
}
