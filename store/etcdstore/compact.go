package etcdstore

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/store"
)

// Compact makes etcd discard its history before a revision. It returns when that is decided; etcd
// frees the space in the background, a piece at a time, so that no request waits for it.
func (s *Store) Compact(ctx context.Context, before store.Revision) (err error) {
	client := s.data
	if s.cfg.Compactor != nil {
		if client, err = s.compactor(ctx); err != nil {
			return fmt.Errorf("compact before revision %d: %w", before, s.explainDial(ctx, err))
		}
		defer func() { err = errors.Join(err, closeClient(client)) }()
	}
	_, err = client.Compact(ctx, int64(before))
	switch etcdErr := rpctypes.Error(err); {
	case err == nil:
		return nil
	case errors.Is(etcdErr, rpctypes.ErrCompacted):
		return fmt.Errorf("compact before revision %d: %w", before, store.ErrCompacted)
	default: // sent or not: repeating it is harmless
		return fmt.Errorf("compact before revision %d: %w", before, writeError(ctx, err, true))
	}
}

// compactor connects as the client that may compact. It is needed a few times an hour, so that
// nothing is kept open with root's rights.
func (s *Store) compactor(ctx context.Context) (*clientv3.Client, error) {
	root := &Store{cfg: s.cfg, ctx: ctx}
	root.cfg.Endpoints = s.data.Endpoints()
	root.cfg.TLS, root.cfg.Username, root.cfg.Password, root.cfg.token = s.cfg.Compactor, "", "", ""
	return root.newClient(ctx)
}
