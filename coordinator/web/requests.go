package web

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Store measures how a store answers. The cache counts what watches do.
func (m *Metrics) Store(s store.Store) store.Store { return &measured{Store: s, m: m} }

type measured struct {
	store.Store
	m *Metrics
}

func (s *measured) over(operation string, begun time.Time, err error) {
	result := "done"
	switch {
	case err == nil:
	case errors.Is(err, store.ErrNotFound):
		result = "not_found"
	case errors.Is(err, store.ErrCompacted):
		result = "compacted"
	case errors.Is(err, store.ErrConflict):
		result = "conflict"
	case errors.Is(err, store.ErrLeaseGone):
		result = "lease_gone"
	case errors.Is(err, store.ErrDenied):
		result = "denied"
	case errors.Is(err, store.ErrUnavailable):
		result = "unavailable"
	default:
		result = "unknown"
	}
	s.m.etcdRequests.WithLabelValues(operation, result).Inc()
	s.m.etcdTimes.WithLabelValues(operation).Observe(time.Since(begun).Seconds())
}

func (s *measured) Get(ctx context.Context, key string) (store.KV, error) {
	begun := time.Now()
	kv, err := s.Store.Get(ctx, key)
	s.over("get", begun, err)
	return kv, err
}

func (s *measured) List(ctx context.Context, prefix string, at store.Revision) (store.Listing, error) {
	begun := time.Now()
	l, err := s.Store.List(ctx, prefix, at)
	s.over("list", begun, err)
	return l, err
}

func (s *measured) ListPart(ctx context.Context, prefix, from string, most int, at store.Revision) (store.Part, error) {
	begun := time.Now()
	part, err := s.Store.ListPart(ctx, prefix, from, most, at)
	s.over("list", begun, err)
	return part, err
}

func (s *measured) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	begun := time.Now()
	rev, err := s.Store.Commit(ctx, txn)
	s.over("commit", begun, err)
	return rev, err
}

func (s *measured) Grant(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	begun := time.Now()
	l, err := s.Store.Grant(ctx, ttl)
	s.over("grant", begun, err)
	return l, err
}

func (s *measured) Renew(ctx context.Context, id store.LeaseID) (store.Lease, error) {
	begun := time.Now()
	l, err := s.Store.Renew(ctx, id)
	s.over("renew", begun, err)
	return l, err
}

func (s *measured) Revoke(ctx context.Context, id store.LeaseID) error {
	begun := time.Now()
	err := s.Store.Revoke(ctx, id)
	s.over("revoke", begun, err)
	return err
}

func (s *measured) Compact(ctx context.Context, before store.Revision) error {
	begun := time.Now()
	err := s.Store.Compact(ctx, before)
	s.over("compact", begun, err)
	return err
}

func (s *measured) Vitals(ctx context.Context) (store.Vitals, error) {
	begun := time.Now()
	v, err := s.Store.Vitals(ctx)
	s.over("vitals", begun, err)
	return v, err
}
