package store_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
)

const sessionTTL = 6 * time.Second

// session runs a session on the side. Its work puts a key on the lease and waits for the end of
// its context.
type session struct {
	lease store.Lease
	ctx   context.Context // of the work
	ended time.Time       // when the work's context ended
	done  chan error
}

func startSession(ctx context.Context, t *testing.T, s store.Store) *session {
	t.Helper()
	run := &session{done: make(chan error, 1)}
	working := make(chan struct{})
	go func() {
		run.done <- store.NewSessions(s, sessionTTL).Run(ctx, func(ctx context.Context, lease store.Lease) error {
			run.lease, run.ctx = lease, ctx
			_, err := s.Commit(ctx, store.Txn{Writes: []store.Write{store.PutLeased("/own", nil, lease.ID)}})
			close(working)
			if err != nil {
				return err
			}
			<-ctx.Done()
			run.ended = time.Now()
			return ctx.Err()
		})
	}()
	<-working
	return run
}

func TestSessionIsRenewedForAsLongAsItsWorkTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t).Connect()
		ctx, cancel := context.WithCancel(t.Context())
		run := startSession(ctx, t, s)
		pass(100 * sessionTTL) // how long the session is to last
		if run.ctx.Err() != nil {
			t.Fatalf("session ended: %v", context.Cause(run.ctx))
		}
		if len(keysBelow(t, s, "/own")) != 1 {
			t.Fatal("the session's key is gone")
		}
		cancel()
		if err := <-run.done; !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrSessionLost) {
			t.Errorf("after its context ended: %v", err)
		}
		if keys := keysBelow(t, s, "/own"); len(keys) != 0 {
			t.Errorf("left behind: %v", keys)
		}
	})
}

func TestSessionIsRenewedWhileWorkWindsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t).Connect()
		ctx, cancel := context.WithCancel(t.Context())
		failed := errors.New("failed")
		err := store.NewSessions(s, sessionTTL).Run(ctx, func(ctx context.Context, lease store.Lease) error {
			if _,
				err := s.Commit(ctx, store.Txn{Writes: []store.Write{store.PutLeased("/own", nil,
				lease.ID)}}); err != nil {
				return err
			}
			cancel()
			pass(5 * sessionTTL) // how long the work winds down
			if len(keysBelow(t, s, "/own")) != 1 {
				t.Error("the lease ended before the work did")
			}
			return failed
		})
		if !errors.Is(err, failed) {
			t.Errorf("got %v, want what work returned", err)
		}
		if keys := keysBelow(t, s, "/own"); len(keys) != 0 {
			t.Errorf("left behind: %v", keys)
		}
	})
}

// The lease may have ended once From + TTL has passed without a renewal, whatever the store does
// meanwhile.
//
// proves SAFE-7
func TestSessionIsLostNoLaterThanItsLease(t *testing.T) {
	for name, fault := range map[string]struct{ begin, end func(m *memory) }{
		"cut off":      {func(m *memory) { m.s.Faults().Cut() }, func(m *memory) { m.s.Faults().Mend() }},
		"frozen":       {func(m *memory) { m.db.Faults().Freeze() }, func(m *memory) { m.db.Faults().Thaw() }},
		"silent Renew": {func(m *memory) { m.silent.Store(true) }, func(m *memory) { close(m.hang) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memory{db: newMemory(t), hang: make(chan struct{})}
				m.s = m.db.Connect()
				m.Store = m.s
				run := startSession(t.Context(), t, m)
				pass(10 * sessionTTL)
				synctest.Wait() // every renewal that was due is answered
				fault.begin(m)
				struck := time.Now()
				<-run.ctx.Done()
				synctest.Wait()
				fault.end(m)
				err := <-run.done
				if !errors.Is(err, store.ErrSessionLost) || !errors.Is(context.Cause(run.ctx), store.ErrSessionLost) {
					t.Errorf("session ended with %v, cause %v", err, context.Cause(run.ctx))
				}
				if lasted := run.ended.Sub(struck); lasted > sessionTTL || lasted < sessionTTL/2 {
					t.Errorf("it was held for %s without the store, with a TTL of %s", lasted, sessionTTL)
				}
				pass(sessionTTL)
				if keys := keysBelow(t, m.s, "/own"); len(keys) != 0 {
					t.Errorf("left behind: %v", keys)
				}
			})
		})
	}
}

// memory is a store whose Renew can be made to break its promise to answer in time.
type memory struct {
	store.Store
	s      *memClient
	db     *memDatabase
	silent atomic.Bool // Renew waits for hang
	hang   chan struct{}
}

func (m *memory) Renew(ctx context.Context, id store.LeaseID) (store.Lease, error) {
	if m.silent.Load() {
		<-m.hang
	}
	return m.Store.Renew(ctx, id)
}

func TestSessionSurvivesWhatIsShorterThanItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t).Connect()
		ctx, cancel := context.WithCancel(t.Context())
		run := startSession(ctx, t, s)
		for range 20 {
			pass(sessionTTL / 4)
			s.Faults().Cut()
			// The lease has two thirds of its TTL left when a renewal first fails. Retrying only at
			// the next third would leave one more chance, retrying quickly succeeds right after
			// this.
			pass(sessionTTL * 55 / 100)
			s.Faults().Mend()
			pass(time.Second)
			if run.ctx.Err() != nil {
				t.Fatalf("session ended: %v", context.Cause(run.ctx))
			}
		}
		cancel()
		<-run.done
	})
}

func TestSessionIsLostByTheStoresWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newMemory(t)
		run := startSession(t.Context(), t, db.Connect())
		pass(2*sessionTTL + time.Millisecond)
		db.Faults().DropLease(run.lease.ID)
		dropped := time.Now()
		err := <-run.done
		if !errors.Is(err, store.ErrSessionLost) || !errors.Is(err, store.ErrLeaseGone) ||
			!errors.Is(err, context.Canceled) {
			t.Errorf("session ended with %v", err)
		}
		if took := run.ended.Sub(dropped); took > sessionTTL/3 {
			t.Errorf("noticed after %s, though the next renewal was due within %s", took, sessionTTL/3)
		}
	})
}

func TestSessionIsNotOpenedWithoutALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newMemory(t)
		s := db.Connect()
		work := func(context.Context, store.Lease) error {
			t.Error("work runs without a lease")
			return nil
		}
		s.Faults().Cut()
		if err := store.NewSessions(s, sessionTTL).Run(t.Context(), work); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("cut off: %v", err)
		}
		s.Faults().Mend()
		db.Faults().Freeze()
		done := make(chan error, 1)
		go func() { done <- store.NewSessions(s, sessionTTL).Run(t.Context(), work) }()
		pass(sessionTTL)
		db.Faults().Thaw()
		if err := <-done; !errors.Is(err, store.ErrSessionLost) {
			t.Errorf("granted when it had ended by our clock: %v", err)
		}
	})
}

// The keys of a session that was lost while the store was out of reach are removed by the next
// session, not after another TTL: until then no other replica could lead.
//
// proves ELECT-2
func TestSessionRevokesTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newMemory(t)
		s, other := db.Connect(), db.Connect()
		sessions := store.NewSessions(s, sessionTTL)
		err := sessions.Run(t.Context(), func(ctx context.Context, lease store.Lease) error {
			put := store.Txn{Writes: []store.Write{store.PutLeased("/own", nil, lease.ID)}}
			if _, err := s.Commit(ctx, put); err != nil {
				return err
			}
			s.Faults().Cut()
			pass(sessionTTL / 2)
			db.Faults().ChangeLeader() // which starts every lease again
			<-ctx.Done()
			return nil
		})
		if !errors.Is(err, store.ErrSessionLost) {
			t.Fatalf("cut off for longer than the TTL: %v", err)
		}
		db.Faults().ChangeLeader()
		if len(keysBelow(t, other, "/own")) != 1 {
			t.Fatal("the key should outlast the session: nothing is proved")
		}
		s.Faults().Mend()
		err = sessions.Run(t.Context(), func(context.Context, store.Lease) error {
			synctest.Wait()
			if keys := keysBelow(t, other, "/own"); len(keys) != 0 {
				t.Errorf("still there: %v", keys)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
