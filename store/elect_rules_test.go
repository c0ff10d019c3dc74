package store_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A leader that resigns late removes no key but the one that it won with: the lease may hold the
// key of a later election.
//
// proves SAFE-7
func TestResignationIsOfOneElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t).Connect()
		first := startElect(t, s, "a")
		first.leads(t, s)
		second, err := store.Elect(t.Context(), s, shard, first.lease, store.Leader{Schema: store.Schema, Replica: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if err := first.fence.Resign(t.Context(), s); err != nil {
			t.Errorf("resign from the election before: %v", err)
		}
		if err := fenced(t, s, second); err != nil {
			t.Errorf("the present leader after the one before has resigned: %v", err)
		}
		s.Faults().Cut()
		if err := second.Resign(t.Context(), s); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("resign while the store is out of reach: %v, want ErrUnavailable", err)
		}
	})
}

// A candidate's key says who stands, goes with its lease, and is compared with other candidates'
// keys only.
//
// proves SAFE-7
func TestCandidatesKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t).Connect()
		put(t, s, shard.Served(), "older than any candidate")
		c := startElect(t, s, "replica-1")
		c.leads(t, s)
		kv, err := s.Get(t.Context(), shard.Leader(c.lease.ID))
		if err != nil {
			t.Fatal(err)
		}
		if kv.Lease != c.lease.ID {
			t.Errorf("the key is on lease %d, want %d", kv.Lease, c.lease.ID)
		}
		leader, err := store.Decode[store.Leader](kv)
		if err != nil || leader.Record.Replica != "replica-1" {
			t.Errorf("the key holds %+v, %v", leader, err)
		}
		if err := s.Revoke(t.Context(), c.lease.ID); err != nil {
			t.Fatal(err)
		}
		if keys := keysBelow(t, s, shard.Of(store.KindLeader)); len(keys) != 0 {
			t.Errorf("after the lease has ended there is still %v", keys)
		}
	})
}

// A key that was taken off its lease would outlive its candidate, so the candidate does not lead
// with it, even if it was about to.
//
// proves SAFE-7
func TestAKeyOffItsLeaseDoesNotLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newMemory(t)
		s, candidates := db.Connect(), db.Connect()
		leader := startElect(t, s, "leader")
		leader.leads(t, s)
		next := startElect(t, candidates, "next")
		candidates.Faults().Cut() // it hears of nothing meanwhile
		key := shard.Leader(next.lease.ID)
		for _, w := range []store.Write{store.Put(key, nil), store.Delete(leader.fence.Key)} {
			if _, err := s.Commit(t.Context(), store.Txn{Writes: []store.Write{w}}); err != nil {
				t.Fatal(err)
			}
		}
		candidates.Faults().Mend()
		next.leads(t, s)
		if kv, err := s.Get(t.Context(), key); err != nil || kv.Lease != next.lease.ID {
			t.Errorf("it leads with %+v, %v", kv, err)
		}
	})
}

// The next in line leads at once when the leader resigns, without a wait.
func TestNextInLineLeadsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t).Connect()
		leader := startElect(t, s, "leader")
		leader.leads(t, s)
		next := startElect(t, s, "next")
		resigned := time.Now()
		if err := leader.fence.Resign(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		next.leads(t, s)
		if took := time.Since(resigned); took != 0 {
			t.Errorf("it led %s after the resignation", took)
		}
	})
}

// An election that its context ends returns the cause of that, wherever it waits.
func TestElectionReturnsTheCauseOfItsEnd(t *testing.T) {
	cause := errors.New("no longer wanted")
	for name, cut := range map[string]bool{"in line": false, "between two attempts": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newMemory(t)
				s, own := db.Connect(), db.Connect()
				leader := startElect(t, s, "leader")
				leader.leads(t, s)
				ctx, cancel := context.WithCancelCause(t.Context())
				failed := make(chan error, 1)
				lease := grant(t, s, time.Hour)
				go func() {
					_, err := store.Elect(ctx, own, shard, lease, store.Leader{})
					failed <- err
				}()
				synctest.Wait()
				if cut {
					own.Faults().Cut()
					pass(time.Minute)
				}
				cancel(cause)
				if err := <-failed; !errors.Is(err, cause) {
					t.Errorf("failed with %v, want %v", err, cause)
				}
			})
		})
	}
}

// Of several candidates the one whose key was created first leads; of those that were created in
// one transaction, the one whose key sorts first. The order of the list makes no difference.
//
// proves SAFE-7
func TestLeaderNowWhateverTheOrder(t *testing.T) {
	for _, test := range []struct {
		kvs  []store.KV
		want string
	}{
		{[]store.KV{{Key: "a", Created: 5}, {Key: "b", Created: 5}}, "a"},
		{[]store.KV{{Key: "b", Created: 5}, {Key: "a", Created: 5}}, "a"},
		{[]store.KV{{Key: "b", Created: 5}, {Key: "a", Created: 6}}, "b"},
		{[]store.KV{{Key: "a", Created: 6}, {Key: "b", Created: 5}}, "b"},
		{[]store.KV{{Key: "a", Created: 5}, {Key: "a", Created: 5, Modified: 7}}, "a"},
	} {
		if now, ok := store.LeaderNow(test.kvs); !ok || now.Key != test.want {
			t.Errorf("of %+v %+v leads, want %s", test.kvs, now, test.want)
		}
	}
}

// before does something once, just before the next list.
type before struct {
	store.Store
	do func()
}

func (b *before) List(ctx context.Context, prefix string, rev store.Revision) (store.Listing, error) {
	if do := b.do; do != nil {
		b.do = nil
		do()
	}
	return b.Store.List(ctx, prefix, rev)
}

// Whatever happens to a candidate's key between its creation and the read of who is first, it leads
// only with a key of its own making that is on its lease. A key without a lease would outlive its
// leader, and the shard would have none.
//
// proves SAFE-7, ELECT-2
func TestACandidateLooksAtItsOwnKeyAgain(t *testing.T) {
	for name, writes := range map[string]func(key string, lease store.LeaseID) []store.Write{
		"taken off its lease": func(key string,
			_ store.LeaseID,
		) []store.Write {
			return []store.Write{store.Put(key, nil)}
		},
		"removed": func(key string,
			_ store.LeaseID,
		) []store.Write {
			return []store.Write{store.Delete(key)}
		},
		"put back without a lease": func(key string, _ store.LeaseID) []store.Write {
			return []store.Write{store.Delete(key), store.Put(key, nil)}
		},
		"put back on its own lease": func(key string, l store.LeaseID) []store.Write {
			return []store.Write{store.Delete(key), store.PutLeased(key, nil, l)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newMemory(t)
				s := db.Connect()
				lease := grant(t, s, time.Hour)
				key := shard.Leader(lease.ID)
				interfering := &before{Store: db.Connect()}
				interfering.do = func() {
					for _, w := range writes(key, lease.ID) {
						if _, err := s.Commit(t.Context(), store.Txn{Writes: []store.Write{w}}); err != nil {
							t.Error(err)
						}
					}
				}
				fence, err := store.Elect(t.Context(), interfering, shard, lease,
					store.Leader{Schema: store.Schema, Replica: "r"})
				if err != nil {
					t.Fatal(err)
				}
				kv, err := s.Get(t.Context(), key)
				if err != nil || kv.Lease != lease.ID || kv.Created != fence.Created {
					t.Errorf("it leads with %+v by the fence %+v, %v", kv, fence, err)
				}
				if leader, err := store.Decode[store.Leader](kv); name != "put back on its own lease" &&
					(err != nil || leader.Record.Replica != "r") {
					t.Errorf("the key says %+v, %v", leader, err)
				}
			})
		})
	}
}
