package cli

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/store"
)

// knownGroup fails with NotFound if nothing in these shards has the group's name: no spec, no
// status, no instance. An empty answer to a misspelt name would look as if nothing were wrong.
func (s *Session) knownGroup(ctx context.Context, shards []string, name string) error {
	if !isName(name) {
		return noGroup(name)
	}
	for _, shard := range shards {
		keys := store.KeysOf(shard)
		for _, key := range []string{keys.Group(name), keys.Static(name), keys.Status(name)} {
			if kv, err := s.find(ctx, key); err != nil || kv.Modified != 0 {
				return err
			}
		}
		listing, err := s.list(ctx, keys.Of(store.KindInstances)+name+"-", 0)
		if err != nil {
			return err
		}
		all, err := decodeInstances(listing)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(all, func(v store.Versioned[store.Instance]) bool { return v.Record.Group == name }) {
			return nil
		}
	}
	return noGroup(name)
}

// knownInstance fails with NotFound if there is no such instance. Recent entries about it may still
// be in the journal, further back than the lookup went.
func (s *Session) knownInstance(ctx context.Context, id string, looked time.Duration) error {
	if !isName(id) {
		return noInstance(id)
	}
	if kv, err := s.find(ctx, s.keys().Instance(id)); err != nil || kv.Modified != 0 {
		return err
	}
	next := "leasehold events -i " + id + farBackFlag
	if looked >= farBack {
		next = "leasehold instance list"
	}
	return failure(NotFound, next, "no instance %q, and nothing about it in the journal of the last %s", id,
		output.Span(looked))
}
