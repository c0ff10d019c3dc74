package etcdstore

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/leasehold/leasehold/store"
)

// Compact has etcd forget what was before a revision. It returns when that is decided; the room is
// made in the background, a piece at a time, so that no request waits for it.
func (s *Store) Compact(ctx context.Context, before store.Revision) error {
	_, err := s.data.Compact(ctx, int64(before))
	switch etcdErr := rpctypes.Error(err); {
	case err == nil:
		return nil
	case errors.Is(etcdErr, rpctypes.ErrCompacted):
		return fmt.Errorf("compact before revision %d: %w", before, store.ErrCompacted)
	default: // sent or not: repeating it is harmless
		return fmt.Errorf("compact before revision %d: %w", before, writeError(ctx, err, true))
	}
}
