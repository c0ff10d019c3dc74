package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold/coordinator/evidence"
	"github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/store"
)

const (
	recallTakes = 2 * time.Second // the most for all keys of one step
	recallDepth = 10              // values of a key to try
)

// recall reads from etcd's history what unreadable keys said before, if no cache has it (SAFE-16).
// What cannot be read now is retried in the next step.
func (t *term) recall(ctx context.Context, wanted []evidence.UnreadableKey) {
	ctx, cancel := context.WithTimeout(ctx, recallTakes)
	defer cancel()
	for _, s := range wanted {
		kv, err := t.r.before(ctx, s.Key, s.Modified)
		if err != nil {
			t.log.Warn("etcd's history cannot be read", "key", s.Key, "error", err)
			t.evidence.PlanAgain("", time.Now().Add(leader.RefusedWait))
			return
		}
		t.evidence.Recalled(s, kv)
	}
}

// before returns the newest readable value of a key older than a revision; zero if etcd keeps none.
func (r *Replica) before(ctx context.Context, key string, rev store.Revision) (store.KV, error) {
	for range recallDepth {
		kv, err := r.valueAt(ctx, key, rev-1)
		if err != nil || kv.Modified == 0 {
			return store.KV{}, err
		}
		if _, err := store.Decode[struct{}](kv); err == nil {
			return kv, nil
		}
		rev = kv.Modified
	}
	return store.KV{}, nil
}

// valueAt returns a key's value as of a revision; zero if there was none, or etcd does not keep it.
func (r *Replica) valueAt(ctx context.Context, key string, at store.Revision) (store.KV, error) {
	if at < 1 {
		return store.KV{}, nil
	}
	l, err := r.deps.Store.List(ctx, key, at)
	if errors.Is(err, store.ErrCompacted) {
		return store.KV{}, nil
	}
	if err != nil {
		return store.KV{}, err
	}
	for _, kv := range l.KVs {
		if kv.Key == key { // other keys share the prefix
			return kv, nil
		}
	}
	return store.KV{}, nil
}
