package memstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Store is one client of a database. It follows the contract of [store.Store], which its methods'
// comments do not repeat.
type Store struct {
	db *Database

	// All under the database's lock:
	deadlines    map[store.LeaseID]time.Time // of the leases, by the server's last answer to this client
	cut          bool
	stalled      bool
	lostAnswers  int // so many commits are answered with ErrUnknown, although they happened
	lostRequests int // so many commits are answered with ErrUnknown, and did not happen
}

var _ store.Store = (*Store)(nil)

// enter waits until the database takes the call, and returns with its lock held; or it fails
// without the lock.
func (s *Store) enter(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
		s.db.mu.Lock()
		switch {
		case s.db.closed:
			s.db.mu.Unlock()
			return fmt.Errorf("%w: database is closed", store.ErrUnavailable)
		case s.cut:
			s.db.mu.Unlock()
			return fmt.Errorf("%w: connection is cut", store.ErrUnavailable)
		case !s.db.frozen:
			return nil
		}
		thaw := s.db.thaw
		s.db.mu.Unlock()
		select {
		case <-thaw:
		case <-s.db.ended:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w: %w", store.ErrUnavailable, errHanging, ctx.Err())
		}
	}
}

// errHanging: the call was sent to a frozen database, which may still take it up.
var errHanging = errors.New("no answer")

// Get reads one key.
func (s *Store) Get(ctx context.Context, key string) (store.KV, error) {
	if err := s.enter(ctx); err != nil {
		return store.KV{}, fmt.Errorf("get %s: %w", key, err)
	}
	defer s.db.mu.Unlock()
	kv, there := s.db.history.get(key)
	if !there {
		return store.KV{}, fmt.Errorf("get %s: %w", key, store.ErrNotFound)
	}
	return copied(kv), nil
}

// listPart is how many keys one part of a list has at most. It is less than etcd's, so that what
// reads in parts does so in tests, too.
const listPart = 1_000

// List reads a prefix.
func (s *Store) List(ctx context.Context, prefix string, at store.Revision) (store.Listing, error) {
	part, err := s.list(ctx, prefix, "", math.MaxInt, at)
	return part.Listing, err
}

// ListPart reads some of a prefix.
func (s *Store) ListPart(ctx context.Context, prefix, from string, most int, at store.Revision) (store.Part, error) {
	if most == 0 {
		most = listPart
	}
	return s.list(ctx, prefix, from, min(most, listPart), at)
}

func (s *Store) list(ctx context.Context, prefix, from string, most int, at store.Revision) (store.Part, error) {
	if err := s.enter(ctx); err != nil {
		return store.Part{}, fmt.Errorf("list %s: %w", prefix, err)
	}
	defer s.db.mu.Unlock()
	part, err := s.db.history.list(prefix, from, most, at)
	if err != nil {
		return store.Part{}, fmt.Errorf("list %s: %w", prefix, err)
	}
	return part, nil
}

// Commit does a transaction.
func (s *Store) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	if err := txn.Validate(); err != nil {
		return 0, fmt.Errorf("commit: %w", err)
	}
	if err := s.enter(ctx); err != nil {
		if errors.Is(err, errHanging) {
			s.db.abandon(txn)
			return 0, fmt.Errorf("commit: %w: %w", store.ErrUnknown, ctx.Err())
		}
		return 0, fmt.Errorf("commit: %w", err)
	}
	defer s.db.mu.Unlock()
	if s.lostRequests > 0 {
		s.lostRequests--
		return 0, fmt.Errorf("commit: %w: request lost", store.ErrUnknown)
	}
	rev, err := s.db.commit(txn)
	if s.lostAnswers > 0 {
		s.lostAnswers--
		return 0, fmt.Errorf("commit: %w: answer lost", store.ErrUnknown)
	}
	if err != nil {
		return 0, fmt.Errorf("commit: %w", err)
	}
	return rev, nil
}

// Grant makes a lease.
func (s *Store) Grant(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	from := s.db.clock.Now()
	if err := s.enter(ctx); err != nil {
		return store.Lease{}, fmt.Errorf("grant lease: %w", err)
	}
	defer s.db.mu.Unlock()
	return s.heard(s.db.grant(ttl), from), nil
}

// Renew extends a lease.
func (s *Store) Renew(ctx context.Context, id store.LeaseID) (store.Lease, error) {
	from := s.db.clock.Now()
	s.db.mu.Lock()
	deadline, known := s.deadlines[id]
	s.db.mu.Unlock()
	if known && !from.Before(deadline) {
		return store.Lease{}, fmt.Errorf("renew: %w", leaseGone(id))
	}
	if err := s.enter(ctx); err != nil {
		return store.Lease{}, fmt.Errorf("renew lease %s: %w", id, err)
	}
	defer s.db.mu.Unlock()
	l, err := s.db.renew(id)
	if err != nil {
		return store.Lease{}, fmt.Errorf("renew: %w", err)
	}
	return s.heard(l, from), nil
}

// heard records the server's answer for a lease. The database's lock is held.
func (s *Store) heard(l *lease, from time.Time) store.Lease {
	heard := store.Lease{ID: l.id, TTL: l.ttl, From: from}
	s.deadlines[l.id] = heard.Ends()
	if len(s.deadlines) > 2*len(s.db.leases)+1000 { // a lease that is gone needs no deadline: the server says so too
		maps.DeleteFunc(s.deadlines, func(id store.LeaseID, _ time.Time) bool { return s.db.leases[id] == nil })
	}
	return heard
}

// Revoke ends a lease.
func (s *Store) Revoke(ctx context.Context, id store.LeaseID) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("revoke lease %s: %w", id, err)
	}
	defer s.db.mu.Unlock()
	delete(s.deadlines, id)
	if l := s.db.leases[id]; l != nil {
		s.db.revoke(l)
	}
	return nil
}

// Compact discards history.
func (s *Store) Compact(ctx context.Context, before store.Revision) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	defer s.db.mu.Unlock()
	return s.db.compact(before)
}

// Vitals say how the database is.
func (s *Store) Vitals(ctx context.Context) (store.Vitals, error) {
	if err := s.enter(ctx); err != nil {
		return store.Vitals{}, fmt.Errorf("read vitals: %w", err)
	}
	defer s.db.mu.Unlock()
	v := store.Vitals{Cluster: s.db.cluster, Leader: s.db.leader, Term: s.db.term, Revision: s.db.history.revision}
	if s.db.shown != 0 {
		v.Revision = s.db.shown
	}
	return v, nil
}
