package cli

import (
	"context"

	"github.com/leasehold/leasehold/cmd/foresee"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/evidence"
	"github.com/leasehold/leasehold/store"
)

// foresee returns the world of a group. If the shard has limits, the instances of other groups count
// too, and are read for it (CAP-1).
func (s *Session) foresee(ctx context.Context, group string, own store.Listing, edits []store.Write) (*foresee.World, error) {
	world := foresee.New(s.keys(), group, own, edits, s.env.Now())
	content := cache.FromListing(s.keys(), own)
	if len(evidence.Limits(content)) == 0 {
		return world, nil
	}
	all := store.Listing{Revision: own.Revision}
	for _, prefix := range []string{
		s.keys().Shard(), s.keys().Of(store.KindStatus), s.keys().Of(store.KindSlots), s.keys().Of(store.KindInstances),
	} {
		l, err := s.list(ctx, prefix, all.Revision)
		if err != nil {
			return nil, err
		}
		all.KVs = append(all.KVs, l.KVs...)
	}
	world.Beside(evidence.Limits(cache.FromListing(s.keys(), all)))
	return world, nil
}
