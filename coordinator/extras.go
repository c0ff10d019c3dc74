package coordinator

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

const (
	maxExtras   = 10_000
	extrasEvery = 2 * time.Second
)

// keepExtras keeps extras/ up to date: the machines with this shard's tag and no record (REC-8).
// The keys hang on the session's lease, so they go with the leader.
func (t *term) keepExtras(ctx context.Context) {
	written, read := map[string]store.Extra{}, false
	tick := time.NewTicker(extrasEvery)
	defer tick.Stop()
	for {
		if !read {
			written, read = t.readExtras(ctx)
		}
		if read {
			t.writeExtras(ctx, written)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// readExtras reads what earlier leaders left.
func (t *term) readExtras(ctx context.Context) (map[string]store.Extra, bool) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	l, err := t.r.deps.Store.List(ctx, t.r.keys.Of(store.KindExtras), 0)
	if err != nil {
		return nil, false
	}
	written := map[string]store.Extra{}
	for _, kv := range l.KVs {
		written[kv.Key] = store.Extra{} // to be rewritten on this session's lease
	}
	return written, true
}

// writeExtras writes what has changed, and records it in written. What cannot be written now is
// retried.
func (t *term) writeExtras(ctx context.Context, written map[string]store.Extra) {
	var now []store.Extra
	t.r.cache.View(func(c *cache.Content) { now = t.evidence.Extras(c, maxExtras) })
	there := make(map[string]bool, len(now))
	var writes []store.Write
	after := map[string]store.Extra{}
	flush := func() bool {
		if len(writes) == 0 {
			return true
		}
		if _, err := t.commit(ctx, nil, writes); err != nil {
			if ctx.Err() == nil {
				t.log.Debug("extras not written", "error", err)
			}
			return false
		}
		for _, w := range writes {
			if w.Delete {
				delete(written, w.Key)
			} else {
				written[w.Key] = after[w.Key]
			}
		}
		writes = nil
		return true
	}
	for _, x := range now {
		key := t.r.keys.Extra(x.Instance)
		there[key] = true
		if old, known := written[key]; known && sameExtra(old, x) {
			continue
		}
		after[key] = x
		writes = append(writes, store.PutLeased(key, store.Encode(x), t.lease))
		if len(writes) == extrasAtOnce && !flush() {
			return
		}
	}
	for key := range written {
		if there[key] {
			continue
		}
		writes = append(writes, store.Delete(key))
		if len(writes) == extrasAtOnce && !flush() {
			return
		}
	}
	flush()
}

// extrasAtOnce keeps a transaction well below store.MaxOps.
const extrasAtOnce = 100

// sameExtra ignores Since, which depends on the wall clock.
func sameExtra(a, b store.Extra) bool {
	b.Since = a.Since
	return a == b
}
