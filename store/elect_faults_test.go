package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
)

// failsOnce is a store of which one method fails the first time that it is called.
type failsOnce struct {
	store.Store
	method string
	err    error
	failed bool
}

func (s *failsOnce) fails(method string) bool {
	if s.failed || s.method != method {
		return false
	}
	s.failed = true
	return true
}

func (s *failsOnce) Get(ctx context.Context, key string) (store.KV, error) {
	if s.fails("Get") {
		return store.KV{}, s.err
	}
	return s.Store.Get(ctx, key)
}

func (s *failsOnce) List(ctx context.Context, prefix string, at store.Revision) (store.Listing, error) {
	if s.fails("List") {
		return store.Listing{}, s.err
	}
	return s.Store.List(ctx, prefix, at)
}

func (s *failsOnce) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	if s.fails("Commit") {
		return 0, s.err
	}
	return s.Store.Commit(ctx, txn)
}

func (s *failsOnce) Watch(ctx context.Context, prefix string, from store.Revision) <-chan store.Batch {
	if s.fails("Watch") {
		batches := make(chan store.Batch, 1)
		if s.err != nil {
			batches <- store.Batch{Err: s.err}
		}
		close(batches)
		return batches
	}
	return s.Store.Watch(ctx, prefix, from)
}

// An election goes on after every error that may pass, wherever it comes from. After a write only
// the store's own refusal is an end: whatever else failed may have happened all the same, and
// reading tells.
//
// proves SAFE-7
func TestErrorsThatEndAnElection(t *testing.T) {
	other := errors.New("a bug")
	for err, passes := range map[error]bool{
		store.ErrUnavailable: true, store.ErrUnknown: true, store.ErrConflict: true, store.ErrCompacted: true,
		context.DeadlineExceeded: true,
		store.ErrDenied:          false, store.ErrLeaseGone: false, other: false,
	} {
		for _, method := range []string{"Get", "List", "Commit", "Watch"} {
			wins := passes || method == "Commit" && errors.Is(err, other)
			t.Run(fmt.Sprint(method, " ", err), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					db := newMemory(t)
					leader := startElect(t, db.Connect(), "leader")
					leader.leads(t, db.Connect())
					s := &failsOnce{Store: db.Connect(), method: method, err: fmt.Errorf("%s: %w", method, err)}
					challenger := startElect(t, s, "challenger")
					if !wins {
						if got := <-challenger.won; !errors.Is(got, err) {
							t.Errorf("it failed with %v", got)
						}
						if keys := keysBelow(t, db.Connect(), shard.Of(store.KindLeader)); len(keys) != 1 {
							t.Errorf("left behind: %v", keys)
						}
						return
					}
					pass(5 * time.Second)
					challenger.waits(t)
					if err := leader.fence.Resign(t.Context(), db.Connect()); err != nil {
						t.Fatal(err)
					}
					challenger.leads(t, db.Connect())
					if !s.failed {
						t.Error("nothing failed")
					}
				})
			})
		}
	}
}

// A watch that ends without a word is begun again.
func TestElectionAfterAWatchHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newMemory(t)
		leader := startElect(t, db.Connect(), "leader")
		leader.leads(t, db.Connect())
		challenger := startElect(t, &failsOnce{Store: db.Connect(), method: "Watch"}, "challenger")
		pass(5 * time.Second)
		challenger.waits(t)
		if err := leader.fence.Resign(t.Context(), db.Connect()); err != nil {
			t.Fatal(err)
		}
		challenger.leads(t, db.Connect())
	})
}

// A candidate leads with its key as it is: one that was removed and put back stands at another
// place in the line, and gives another fence.
//
// proves SAFE-7
func TestAKeyThatWasPutBackIsAnotherFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newMemory(t)
		s, candidates := db.Connect(), db.Connect()
		leader := startElect(t, s, "leader")
		leader.leads(t, s)
		next := startElect(t, candidates, "next")
		candidates.Faults().Cut()
		key := shard.Leader(next.lease.ID)
		for _, w := range []store.Write{
			store.Delete(key), store.PutLeased(key, nil, next.lease.ID),
			store.Delete(leader.fence.Key),
		} {
			if _, err := s.Commit(t.Context(), store.Txn{Writes: []store.Write{w}}); err != nil {
				t.Fatal(err)
			}
		}
		candidates.Faults().Mend()
		next.leads(t, s)
		if err := fenced(t, s, next.fence); err != nil {
			t.Errorf("the leader cannot write: %v", err)
		}
	})
}
