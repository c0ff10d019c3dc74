package store_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newMemory makes a database that the test closes at its end, inside its bubble where there is one.
func newMemory(t *testing.T) *memstore.Database {
	db := memstore.New(memstore.Config{})
	t.Cleanup(db.Close)
	return db
}

func put(t *testing.T, s store.Store, key, value string) store.Revision {
	t.Helper()
	rev, err := s.Commit(t.Context(), store.Txn{Writes: []store.Write{store.Put(key, []byte(value))}})
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func grant(t *testing.T, s store.Store, ttl time.Duration) store.Lease {
	t.Helper()
	lease, err := s.Grant(t.Context(), ttl)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// pass lets that much of the bubble's time pass. Everything that is due in it happens; the test
// takes no longer.
func pass(d time.Duration) { <-time.After(d) }

// keysBelow returns the names of the keys below a prefix.
func keysBelow(t *testing.T, s store.Store, prefix string) []string {
	t.Helper()
	listing, err := s.List(t.Context(), prefix, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, kv := range listing.KVs {
		names = append(names, kv.Key)
	}
	return names
}

// The types of memstore, for tests that hold both.
type (
	memClient   = memstore.Store
	memDatabase = memstore.Database
)
