package gateway_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// After a List that is older than a session's last write, etcd may hold older data, in which the
// session's revisions mean nothing: the key is compared with what etcd has, and rewritten if it
// differs. A List that only began before the write changes nothing.
//
// proves SAFE-1, SAFE-15
func TestAListOlderThanWhatWasWritten(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		a.reports()
		older := func() *cache.Content {
			l, err := w.store.List(t.Context(), w.keys.Prefix(), 0)
			if err != nil {
				t.Fatal(err)
			}
			l.Revision = 1
			return cache.FromListing(w.keys, l)
		}
		before := w.alive("web-0")
		r.Listed(older())
		pass(time.Second)
		if now := w.alive("web-0"); now.Modified != before.Modified {
			t.Errorf("the key is as it was written, and was written again: %+v", now)
		}
		// As the session wrote it, at another revision: so it looks in a snapshot.
		changed := w.put(w.keys.Alive("web-0"), store.Encode(before.Record))
		pass(time.Second)
		if now := w.alive("web-0"); now.Modified != changed {
			t.Fatalf("it was written again without a List: %+v", now)
		}
		r.Listed(older())
		pass(time.Second)
		w.shows("web-0", "one", 1, store.StreamOpen)
		if now := w.alive("web-0"); now.Modified == changed || now.Lease == before.Lease || now.Lease == 0 {
			t.Errorf("it was not written again on a lease of its own: %+v", now)
		}
		a.reports()
	})
}
