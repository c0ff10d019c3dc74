package memstore_test

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

const ttl = 10 * time.Second

// bubble runs a test in a synctest bubble, with a database and a client of it.
func bubble(t *testing.T, test func(t *testing.T, db *memstore.Database, s *memstore.Store)) {
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New(memstore.Config{})
		t.Cleanup(db.Close)
		test(t, db, db.Connect())
	})
}

func put(t *testing.T, s store.Store, key string, lease store.LeaseID) store.Revision {
	t.Helper()
	rev, err := s.Commit(t.Context(), store.Txn{Writes: []store.Write{store.PutLeased(key, []byte(key), lease)}})
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func grant(t *testing.T, s store.Store) store.Lease {
	t.Helper()
	lease, err := s.Grant(t.Context(), ttl)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func has(t *testing.T, s store.Store, key string, want bool) {
	t.Helper()
	_, err := s.Get(t.Context(), key)
	if want && err != nil || !want && !errors.Is(err, store.ErrNotFound) {
		t.Errorf("get %s: %v, want it to be there: %v", key, err, want)
	}
}

// pass lets that much of the bubble's time pass. Everything that is due in it happens; the test
// takes no longer.
func pass(d time.Duration) { <-time.After(d) }

// takesNothing checks that a watch delivers nothing for a while.
func takesNothing(t *testing.T, watch <-chan store.Batch) {
	t.Helper()
	select {
	case b, open := <-watch:
		t.Errorf("the watch delivers %+v, open %v", b, open)
	case <-time.After(5 * time.Second):
	}
}

// takesUpTo reads a watch up to a revision, and returns how many events came.
func takesUpTo(t *testing.T, watch <-chan store.Batch, rev store.Revision) int {
	t.Helper()
	events := 0
	for b := range watch {
		if b.Err != nil {
			t.Fatal(b.Err)
		}
		events += len(b.Events)
		if b.Revision >= rev {
			return events
		}
	}
	t.Fatal("watch ended")
	return 0
}

func TestLeaseEndsExactlyWhenDue(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memstore.Database, s *memstore.Store) {
		lease := grant(t, s)
		put(t, s, "/a", lease.ID)
		for range 5 {
			pass(ttl - time.Nanosecond)
			if _, err := s.Renew(t.Context(), lease.ID); err != nil {
				t.Fatal(err)
			}
		}
		pass(ttl - time.Nanosecond)
		synctest.Wait()
		has(t, s, "/a", true)
		pass(time.Nanosecond)
		synctest.Wait()
		has(t, s, "/a", false)
	})
}

func TestLeaseTTLs(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memstore.Database, s *memstore.Store) {
		for ask, want := range map[time.Duration]time.Duration{
			0: 2 * time.Second, time.Second: 2 * time.Second, 2 * time.Second: 2 * time.Second,
			2500 * time.Millisecond: 3 * time.Second, time.Minute: time.Minute,
		} {
			if lease, err := s.Grant(t.Context(), ask); err != nil || lease.TTL != want {
				t.Errorf("asked for %s: %+v, %v, want %s", ask, lease, err, want)
			}
		}
	})
}

func TestLeasesOnAManualClock(t *testing.T) {
	clock := memstore.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	db := memstore.New(memstore.Config{Clock: clock, MinTTL: time.Second})
	defer db.Close()
	s := db.Connect()
	first, second := grant(t, s), grant(t, s)
	put(t, s, "/first", first.ID)
	put(t, s, "/second", second.ID)
	clock.Advance(ttl / 2)
	if _, err := s.Renew(t.Context(), second.ID); err != nil {
		t.Fatal(err)
	}
	clock.Advance(ttl / 2)
	has(t, s, "/first", false)
	has(t, s, "/second", true)
	clock.Advance(ttl / 2)
	has(t, s, "/second", false)
	if _, err := s.Renew(t.Context(), second.ID); !errors.Is(err, store.ErrLeaseGone) {
		t.Errorf("renew: %v", err)
	}
}

// Like etcd: a client whose renewals failed while it was frozen has lost its lease when it wakes
// (etcd-facts, trap 1).
//
// proves SAFE-1
func TestThawRevokesTheLivingWhoAreOverdue(t *testing.T) {
	bubble(t, func(t *testing.T, db *memstore.Database, s *memstore.Store) {
		overdue := grant(t, s)
		put(t, s, "/overdue", overdue.ID)
		pass(ttl / 2)
		fresh := grant(t, s)
		rev := put(t, s, "/fresh", fresh.ID)
		watch := s.Watch(t.Context(), "/", rev+1)
		db.Faults().Freeze()
		renewed := make(chan error, 1)
		go func() {
			pass(time.Second)
			_, err := s.Renew(t.Context(), overdue.ID)
			renewed <- err
		}()
		takesNothing(t, watch) // and 5s are over
		pass(ttl/2 - time.Second)
		db.Faults().Thaw()
		if err := <-renewed; !errors.Is(err, store.ErrLeaseGone) {
			t.Errorf("the renewal that waited: %v", err)
		}
		if n := takesUpTo(t, watch, rev+1); n != 1 {
			t.Errorf("%d leases' keys went, want 1", n)
		}
		has(t, s, "/overdue", false)
		has(t, s, "/fresh", true)
	})
}

func TestFrozenCallsHang(t *testing.T) {
	bubble(t, func(t *testing.T, db *memstore.Database, s *memstore.Store) {
		for _, apply := range []bool{false, true} {
			key := fmt.Sprint("/late ", apply)
			db.Faults().ApplyAbandoned(apply)
			db.Faults().Freeze()
			db.Faults().Freeze() // is frozen already
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			begun := time.Now()
			if _, err := s.Get(ctx, key); !errors.Is(err, store.ErrUnavailable) || time.Since(begun) != time.Minute {
				t.Errorf("get: %v after %s", err, time.Since(begun))
			}
			ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := s.Commit(ctx, store.Txn{Writes: []store.Write{store.Put(key, nil)}})
			if !errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrUnavailable) {
				t.Errorf("commit: %v, want ErrUnknown", err)
			}
			waiting := make(chan error, 1)
			go func() {
				_, err := s.Commit(t.Context(), store.Txn{Writes: []store.Write{store.Put("/waits", nil)}})
				waiting <- err
			}()
			synctest.Wait()
			db.Faults().Thaw()
			db.Faults().Thaw()
			if err := <-waiting; err != nil {
				t.Errorf("the commit that waited: %v", err)
			}
			has(t, s, key, apply)
		}
	})
}

func TestLeaseOutlivesALeaderChangeInAFreeze(t *testing.T) {
	bubble(t, func(t *testing.T, db *memstore.Database, s *memstore.Store) {
		before, err := s.Vitals(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		lease := grant(t, s)
		put(t, s, "/a", lease.ID)
		db.Faults().Freeze()
		pass(2 * ttl)
		db.Faults().ChangeLeader()
		db.Faults().Thaw()
		has(t, s, "/a", true)
		after, err := s.Vitals(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if after.Term <= before.Term || after.Leader == before.Leader || after.Cluster != before.Cluster {
			t.Errorf("vitals went from %+v to %+v", before, after)
		}
		pass(ttl) // its full time, from the change on
		synctest.Wait()
		has(t, s, "/a", false)
	})
}

func TestVitalsShowAnotherClusterAndRevision(t *testing.T) {
	bubble(t, func(t *testing.T, db *memstore.Database, s *memstore.Store) {
		rev := put(t, s, "/a", 0)
		before, _ := s.Vitals(t.Context())
		db.Faults().ChangeCluster()
		db.Faults().ShowRevision(1)
		after, _ := s.Vitals(t.Context())
		if before.Revision != rev || after.Revision != 1 || after.Cluster == before.Cluster {
			t.Errorf("vitals went from %+v to %+v", before, after)
		}
		db.Faults().ShowRevision(0)
		if v, _ := s.Vitals(t.Context()); v.Revision != rev {
			t.Errorf("vitals %+v at revision %d", v, rev)
		}
	})
}

func TestDropLease(t *testing.T) {
	bubble(t, func(t *testing.T, db *memstore.Database, s *memstore.Store) {
		lease := grant(t, s)
		put(t, s, "/a", lease.ID)
		if !db.Faults().DropLease(lease.ID) || db.Faults().DropLease(lease.ID) {
			t.Error("a lease is dropped once")
		}
		has(t, s, "/a", false)
		if _, err := s.Renew(t.Context(), lease.ID); !errors.Is(err, store.ErrLeaseGone) {
			t.Errorf("renew: %v", err)
		}
	})
}

func TestCutStrikesOneClient(t *testing.T) {
	bubble(t, func(t *testing.T, db *memstore.Database, s *memstore.Store) {
		other := db.Connect()
		lease := grant(t, s)
		rev := put(t, s, "/leased", lease.ID)
		watch := s.Watch(t.Context(), "/", rev+1)
		s.Faults().Cut()
		calls := map[string]func() error{
			"get":  func() error { _, err := s.Get(t.Context(), "/a"); return err },
			"list": func() error { _, err := s.List(t.Context(), "/a", 0); return err },
			"commit": func() error {
				_, err := s.Commit(t.Context(), store.Txn{Writes: []store.Write{store.Put("/cut", nil)}})
				return err
			},
			"grant":  func() error { _, err := s.Grant(t.Context(), ttl); return err },
			"renew":  func() error { _, err := s.Renew(t.Context(), lease.ID); return err },
			"revoke": func() error { return s.Revoke(t.Context(), lease.ID) },
			"vitals": func() error { _, err := s.Vitals(t.Context()); return err },
		}
		for name, call := range calls {
			if err := call(); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
		}
		put(t, other, "/other", 0)
		takesNothing(t, watch)
		pass(ttl)
		synctest.Wait()
		has(t, other, "/leased", false)
		has(t, other, "/cut", false)
		s.Faults().Mend()
		if n := takesUpTo(t, watch, rev+2); n != 2 {
			t.Errorf("%d events after the cut, want 2", n)
		}
		if err := calls["renew"](); !errors.Is(err, store.ErrLeaseGone) {
			t.Errorf("renew after the cut: %v", err)
		}
	})
}

// By this client's own clock a lease has ended at From + TTL, even if the database got the renewal
// later and keeps it.
func TestRenewGoesByTheDeadlineLastHeardOf(t *testing.T) {
	bubble(t, func(t *testing.T, db *memstore.Database, s *memstore.Store) {
		db.Faults().Freeze()
		granted := make(chan store.Lease, 1)
		go func() {
			lease, err := s.Grant(t.Context(), ttl)
			if err != nil {
				t.Error(err)
			}
			granted <- lease
		}()
		pass(ttl / 2)
		db.Faults().Thaw()
		lease := <-granted
		pass(ttl / 2)
		if _, err := s.Renew(t.Context(), lease.ID); !errors.Is(err, store.ErrLeaseGone) {
			t.Errorf("renew at the end by our clock: %v", err)
		}
		if _, err := db.Connect().Renew(t.Context(), lease.ID); err != nil {
			t.Errorf("the database keeps it: %v", err)
		}
	})
}

func TestLostAnswersAndRequests(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memstore.Database, s *memstore.Store) {
		commit := func(key string) error {
			_, err := s.Commit(t.Context(), store.Txn{Writes: []store.Write{store.Put(key, nil)}})
			return err
		}
		s.Faults().LoseAnswer()
		if err := commit("/answer"); !errors.Is(err, store.ErrUnknown) {
			t.Errorf("answer lost: %v", err)
		}
		s.Faults().LoseRequest()
		if err := commit("/request"); !errors.Is(err, store.ErrUnknown) {
			t.Errorf("request lost: %v", err)
		}
		if err := commit("/next"); err != nil {
			t.Errorf("the commit after that: %v", err)
		}
		has(t, s, "/answer", true)
		has(t, s, "/request", false)
	})
}

func TestStalledWatchGoesOnOrFindsItselfCompacted(t *testing.T) {
	bubble(t, func(t *testing.T, db *memstore.Database, s *memstore.Store) {
		rev := put(t, s, "/a", 0)
		watch := s.Watch(t.Context(), "/", rev+1)
		takesUpTo(t, watch, rev)
		s.Faults().StallWatches()
		rev = put(t, s, "/a", 0)
		takesNothing(t, watch)
		s.Faults().ReleaseWatches()
		if n := takesUpTo(t, watch, rev); n != 1 {
			t.Errorf("%d events after the stall, want 1", n)
		}
		s.Faults().StallWatches()
		put(t, s, "/a", 0)
		put(t, s, "/a", 0)
		if err := db.Faults().Compact(0); err != nil {
			t.Fatal(err)
		}
		s.Faults().ReleaseWatches()
		b := <-watch
		for b.Err == nil && len(b.Events) == 0 && b.Revision <= rev {
			b = <-watch // a progress notice that was on its way before the stall
		}
		if _, open := <-watch; open || !errors.Is(b.Err, store.ErrCompacted) || len(b.Events) > 0 {
			t.Errorf("after a compaction: %+v, open %v", b, open)
		}
	})
}

func TestCloseEndsEverything(t *testing.T) {
	bubble(t, func(t *testing.T, db *memstore.Database, s *memstore.Store) {
		grant(t, s)
		watch := s.Watch(t.Context(), "/", 1)
		db.Faults().Freeze()
		got := make(chan error, 1)
		go func() { _, err := s.Get(t.Context(), "/a"); got <- err }()
		synctest.Wait()
		db.Close()
		for range watch {
		}
		if err := <-got; !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("the call that waited: %v", err)
		}
		if _, open := <-s.Watch(t.Context(), "/", 1); open {
			t.Error("a closed database can be watched")
		}
		db.Close()
	})
}

func TestCompactionSparesAWatchThatIsOnlySlow(t *testing.T) {
	bubble(t, func(t *testing.T, db *memstore.Database, s *memstore.Store) {
		watch := s.Watch(t.Context(), "/", 2)
		var rev store.Revision
		const commits = 2500 // of several batches
		for range commits {
			rev = put(t, s, "/a", 0)
		}
		if err := db.Faults().Compact(0); err != nil {
			t.Fatal(err)
		}
		if n := takesUpTo(t, watch, rev); n != commits {
			t.Errorf("%d events, want %d", n, commits)
		}
	})
}
