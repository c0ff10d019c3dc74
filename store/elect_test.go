package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

var shard = store.KeysOf("test")

// stand is one who stands for election on the side.
type stand struct {
	lease store.Lease
	fence store.Fence // valid once won yields nil
	won   chan error
	stop  context.CancelFunc
}

func startElect(t *testing.T, s store.Store, name string) *stand {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &stand{lease: grant(t, s, time.Hour), won: make(chan error, 1), stop: cancel}
	go func() {
		var err error
		c.fence, err = store.Elect(ctx, s, shard, c.lease, store.Leader{Schema: store.Schema, Replica: name})
		c.won <- err
	}()
	synctest.Wait()
	return c
}

// leads waits for the candidate to win, and checks that it leads by what the store says.
func (c *stand) leads(t *testing.T, s store.Store) {
	t.Helper()
	if err := <-c.won; err != nil {
		t.Fatal(err)
	}
	listing, err := s.List(t.Context(), shard.Of(store.KindLeader), 0)
	if err != nil {
		t.Fatal(err)
	}
	if now, ok := store.LeaderNow(listing.KVs); !ok || now.Key != c.fence.Key || now.Created != c.fence.Created {
		t.Errorf("%+v thinks that it leads, the leader is %+v", c.fence, now)
	}
	if c.fence.Key != shard.Leader(c.lease.ID) {
		t.Errorf("elected with the key %s", c.fence.Key)
	}
}

// waits checks that the candidate has not won, nor failed.
func (c *stand) waits(t *testing.T) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-c.won:
		t.Fatalf("did not wait: %v, %+v", err, c.fence)
	default:
	}
}

func fenced(t *testing.T, s store.Store, f store.Fence) error {
	_, err := s.Commit(t.Context(), store.Txn{
		Conditions: []store.Condition{f.Condition()},
		Writes:     []store.Write{store.Put(shard.Served(), nil)},
	})
	return err
}

// proves SAFE-7
func TestOneLeadsAndTheOthersFollowInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newMemory(t)
		s := db.Connect()
		var line []*stand
		for i := range 4 {
			line = append(line, startElect(t, db.Connect(), fmt.Sprint(i)))
		}
		for i, c := range line {
			c.leads(t, s)
			for _, other := range line[i+1:] {
				other.waits(t)
			}
			if err := fenced(t, s, c.fence); err != nil {
				t.Errorf("the leader's fence: %v", err)
			}
			if i%2 == 0 {
				if err := c.fence.Resign(t.Context(), s); err != nil {
					t.Error(err)
				}
			} else if err := s.Revoke(t.Context(), c.lease.ID); err != nil {
				t.Error(err)
			}
			if err := fenced(t, s, c.fence); !errors.Is(err, store.ErrConflict) {
				t.Errorf("a deposed leader writes: %v", err)
			}
			if err := c.fence.Resign(t.Context(), s); err != nil {
				t.Errorf("resign twice: %v", err)
			}
		}
	})
}

// proves SAFE-7
func TestNoFenceIsUsedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t).Connect()
		first := startElect(t, s, "a")
		first.leads(t, s)
		second, err := store.Elect(t.Context(), s, shard, first.lease, store.Leader{Schema: store.Schema, Replica: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if second.Created <= first.fence.Created {
			t.Errorf("two elections on one lease gave %+v and %+v", first.fence, second)
		}
		if err := fenced(t, s, first.fence); !errors.Is(err, store.ErrConflict) {
			t.Errorf("the fence of the election before writes: %v", err)
		}
	})
}

func TestElectionTakesFaultsInItsStride(t *testing.T) {
	for name, test := range map[string]struct {
		before func(s *memstore.Store)                                      // the challenger stands
		during func(t *testing.T, db *memstore.Database, s *memstore.Store) // the challenger waits
	}{
		"nothing":      {},
		"answer lost":  {before: func(s *memstore.Store) { s.Faults().LoseAnswer() }},
		"request lost": {before: func(s *memstore.Store) { s.Faults().LoseRequest() }},
		"many answers lost": {before: func(s *memstore.Store) {
			for range 4 {
				s.Faults().LoseRequest()
			}
			s.Faults().LoseAnswer()
		}},
		"cut off for a while": {during: func(t *testing.T, _ *memstore.Database, s *memstore.Store) {
			s.Faults().Cut()
			pass(20 * time.Second)
			s.Faults().Mend()
		}},
		"frozen for a while": {during: func(t *testing.T, db *memstore.Database, _ *memstore.Store) {
			db.Faults().Freeze()
			pass(20 * time.Second)
			db.Faults().Thaw()
		}},
		"watch compacted": {during: func(t *testing.T, db *memstore.Database, s *memstore.Store) {
			s.Faults().StallWatches()
			put(t, s, "/elsewhere", "")
			if err := db.Faults().Compact(0); err != nil {
				t.Error(err)
			}
			s.Faults().ReleaseWatches()
		}},
		"watch stalled": {during: func(_ *testing.T, _ *memstore.Database, s *memstore.Store) {
			s.Faults().StallWatches()
		}},
		"someone joins and leaves": {during: func(t *testing.T, _ *memstore.Database, s *memstore.Store) {
			other := startElect(t, s, "other")
			other.stop()
			if err := <-other.won; !errors.Is(err, context.Canceled) {
				t.Errorf("the one that left: %v", err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newMemory(t)
				admin, s := db.Connect(), db.Connect()
				leader := startElect(t, admin, "leader")
				leader.leads(t, admin)
				if test.before != nil {
					test.before(s)
				}
				challenger := startElect(t, s, "challenger")
				pass(5 * time.Second)
				if test.during != nil {
					test.during(t, db, s)
				}
				pass(5 * time.Second)
				challenger.waits(t)
				if n := len(keysBelow(t, admin, shard.Of(store.KindLeader))); n != 2 {
					t.Errorf("%d stand for election, want 2", n)
				}
				if err := leader.fence.Resign(t.Context(), admin); err != nil {
					t.Fatal(err)
				}
				challenger.leads(t, admin)
			})
		})
	}
}

func TestCandidateWhoseKeyIsDeletedStandsAgain(t *testing.T) {
	for name, touch := range map[string]func(key string, value []byte) store.Write{
		"deleted":             func(key string, _ []byte) store.Write { return store.Delete(key) },
		"taken off the lease": store.Put,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newMemory(t)
				s := db.Connect()
				leader := startElect(t, s, "leader")
				leader.leads(t, s)
				touched, next := startElect(t, s, "touched"), startElect(t, s, "next")
				key := shard.Leader(touched.lease.ID)
				if _, err := s.Commit(t.Context(),
					store.Txn{Writes: []store.Write{touch(key, []byte("{}"))}}); err != nil {
					t.Fatal(err)
				}
				if err := leader.fence.Resign(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				next.leads(t, s) // the other one went to the end of the line
				touched.waits(t)
				if err := next.fence.Resign(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				touched.leads(t, s)
				if kv, err := s.Get(t.Context(), key); err != nil || kv.Lease != touched.lease.ID {
					t.Errorf("it leads with %+v, %v", kv, err)
				}
			})
		})
	}
}

func TestElectionEndsWithItsContextOrLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newMemory(t)
		s := db.Connect()
		leader := startElect(t, s, "leader")
		leader.leads(t, s)
		stopped, lapsed := startElect(t, s, "stopped"), startElect(t, s, "lapsed")
		stopped.stop()
		if err := <-stopped.won; !errors.Is(err, context.Canceled) {
			t.Errorf("after its context ended: %v", err)
		}
		db.Faults().DropLease(lapsed.lease.ID)
		if err := <-lapsed.won; !errors.Is(err, store.ErrLeaseGone) {
			t.Errorf("after its lease ended: %v", err)
		}
		if keys := keysBelow(t, s, shard.Of(store.KindLeader)); len(keys) != 1 {
			t.Errorf("left behind: %v", keys)
		}

		// An answer that is lost when the context ends leaves no key behind either, once the store
		// can be reached.
		s.Faults().LoseAnswer()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := store.Elect(ctx, s, shard, grant(t, s, time.Hour), store.Leader{}); !errors.Is(err,
			context.DeadlineExceeded) {
			t.Errorf("after its context ended: %v", err)
		}
		if keys := keysBelow(t, s, shard.Of(store.KindLeader)); len(keys) != 1 {
			t.Errorf("left behind: %v", keys)
		}
	})
}

// As soon as a candidate's session is lost its election is over, though the store answers nothing.
//
// proves SAFE-7
func TestElectionWithinASessionEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newMemory(t)
		s := db.Connect()
		leader := startElect(t, s, "leader")
		leader.leads(t, s)
		done := make(chan error, 1)
		go func() {
			done <- store.NewSessions(s, sessionTTL).Run(t.Context(), func(ctx context.Context, lease store.Lease) error {
				_, err := store.Elect(ctx, s, shard, lease, store.Leader{})
				return err
			})
		}()
		pass(time.Minute)
		db.Faults().Freeze()
		if err := <-done; !errors.Is(err, store.ErrSessionLost) {
			t.Errorf("got %v", err)
		}
		db.Faults().Thaw()
	})
}

func TestLeaderNow(t *testing.T) {
	if _, ok := store.LeaderNow(nil); ok {
		t.Error("there is a leader without a candidate")
	}
	now, ok := store.LeaderNow([]store.KV{
		{Key: "b", Created: 7},
		{Key: "c", Created: 5, Modified: 9},
		{Key: "a", Created: 8},
	})
	if !ok || now.Key != "c" {
		t.Errorf("%+v leads", now)
	}
}
