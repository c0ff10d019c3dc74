package coordinator_test

import (
	"slices"
	"sync"

	"github.com/leasehold/leasehold/store"
)

// reading is what a test has read of the database. Tests look several times in a second of
// simulated time, and mostly nothing has happened meanwhile: what is still as it was is neither
// read nor decoded again.
type reading struct {
	mu      sync.Mutex
	lists   map[string]listing // by prefix
	records map[string]record  // by key
}

type listing struct {
	at  store.Revision
	kvs []store.KV
}

type record struct {
	modified store.Revision
	decoded  any // a store.Versioned
}

// list is what a prefix holds. Its values are not to be changed.
func (w *world) list(prefix string) []store.KV {
	w.t.Helper()
	now := w.revision()
	w.read.mu.Lock()
	known := w.read.lists[prefix]
	w.read.mu.Unlock()
	if known.at != now {
		l, err := w.store.List(w.t.Context(), prefix, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		known = listing{l.Revision, l.KVs}
		w.read.mu.Lock()
		w.read.lists[prefix] = known
		w.read.mu.Unlock()
	}
	return slices.Clone(known.kvs)
}

// revision is the newest.
func (w *world) revision() store.Revision {
	w.t.Helper()
	l, err := w.store.List(w.t.Context(), "nothing has this name", 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return l.Revision
}

// records are all records of a kind. What they point to must not be changed.
func records[T any](w *world, kind string) []store.Versioned[T] {
	w.t.Helper()
	var out []store.Versioned[T]
	for _, kv := range w.list(w.keys.Of(kind)) {
		out = append(out, decoded[T](w, kv))
	}
	return out
}

func decoded[T any](w *world, kv store.KV) store.Versioned[T] {
	w.t.Helper()
	w.read.mu.Lock()
	defer w.read.mu.Unlock()
	known := w.read.records[kv.Key]
	if v, same := known.decoded.(store.Versioned[T]); same && known.modified == kv.Modified {
		return v
	}
	v, err := store.Decode[T](kv)
	if err != nil {
		w.t.Fatal(err)
	}
	w.read.records[kv.Key] = record{kv.Modified, v}
	return v
}
