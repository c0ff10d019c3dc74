package storetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// patience is how long a test waits for what must happen.
const patience = time.Minute

// Run puts a store through the suite. Every test opens its own with open, which registers with t
// what is to be closed.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	tests := []struct {
		name string
		run  func(*bench)
	}{
		{"Get", testGet},
		{"List", testList},
		{"ListIsOneStateHoweverManyPages", testListPages},
		{"ListInParts", testListParts},
		{"ListInPartsWhileItChanges", testListPartsChange},
		{"ListAtAnOldRevision", testListOld},
		{"ValuesAreTheCallersOwn", testValues},
		{"CommitRevisions", testRevisions},
		{"Conditions", testConditions},
		{"ConflictNamesKeys", testConflict},
		{"MalformedTransactions", testMalformed},
		{"TransactionsAreAtomic", testAtomic},
		{"RandomTransactions", testModel},
		{"WatchFromListedRevision", testWatchListed},
		{"WatchFromOldRevision", testWatchOld},
		{"WatchDeliversWholeRevisions", testWatchWhole},
		{"WatchOnlyItsPrefix", testWatchPrefix},
		{"WatchTellsProgress", testWatchProgress},
		{"WatchNotReadBlocksNobody", testWatchSlow},
		{"WatchEndsWithItsContext", testWatchEnds},
		{"Compaction", testCompaction},
		{"Vitals", testVitals},
		{"EndedContext", testEndedContext},
		{"Grant", testGrant},
		{"LeaseGone", testLeaseGone},
		{"Revoke", testRevoke},
		{"PutMovesAKeyBetweenLeases", testAttach},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(newBench(t, open(t))) })
	}
	// These wait for leases to end, which takes seconds whatever the machine. They run side by
	// side.
	slow := []struct {
		name string
		run  func(*bench)
	}{
		{"LeaseExpires", testExpiry},
		{"RenewKeeps", testRenew},
		{"ExpiredLeasesDelayNobody", testExpired},
	}
	for _, test := range slow {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(newBench(t, open(t)))
		})
	}
}

// bench is a store under test, and a prefix of the test's own in it.
type bench struct {
	*testing.T
	store.Store
	ctx    context.Context
	prefix string
}

func newBench(t *testing.T, s store.Store) *bench {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return &bench{T: t, Store: s, ctx: ctx, prefix: "/storetest/" + rand.Text() + "/"}
}

func (b *bench) key(name string) string { return b.prefix + name }

// put writes one key, and returns the revision.
func (b *bench) put(name, value string) store.Revision {
	b.Helper()
	return b.commit(store.Put(b.key(name), []byte(value)))
}

// commit makes writes that must succeed.
func (b *bench) commit(writes ...store.Write) store.Revision {
	b.Helper()
	rev, err := b.Commit(b.ctx, store.Txn{Writes: writes})
	if err != nil {
		b.Fatal(err)
	}
	return rev
}

func (b *bench) get(name string) store.KV {
	b.Helper()
	kv, err := b.Get(b.ctx, b.key(name))
	if err != nil {
		b.Fatal(err)
	}
	return kv
}

// absent checks that there is no such key.
func (b *bench) absent(name string) {
	b.Helper()
	if kv, err := b.Get(b.ctx, b.key(name)); !errors.Is(err, store.ErrNotFound) {
		b.Errorf("get %s = %+v, %v; want ErrNotFound", name, kv, err)
	}
}

func (b *bench) list(at store.Revision) store.Listing {
	b.Helper()
	listing, err := b.List(b.ctx, b.prefix, at)
	if err != nil {
		b.Fatal(err)
	}
	return listing
}

func (b *bench) grant(ttl time.Duration) store.Lease {
	b.Helper()
	lease, err := b.Grant(b.ctx, ttl)
	if err != nil {
		b.Fatal(err)
	}
	return lease
}

// next returns the next batch of a watch that must have one.
func (b *bench) next(watch <-chan store.Batch) store.Batch {
	b.Helper()
	select {
	case batch, open := <-watch:
		if !open {
			b.Fatal("watch ended")
		}
		return batch
	case <-b.ctx.Done():
		b.Fatal("watch delivers nothing")
	}
	panic("unreachable")
}

// upTo reads a watch until everything up to rev has been delivered, checks the order, and returns
// the events.
func (b *bench) upTo(watch <-chan store.Batch, rev store.Revision) []store.Event {
	b.Helper()
	var events []store.Event
	var last, delivered store.Revision
	for delivered < rev {
		batch := b.next(watch)
		if batch.Err != nil {
			b.Fatal(batch.Err)
		}
		if batch.Revision < delivered {
			b.Fatalf("batch up to revision %d follows one up to %d", batch.Revision, delivered)
		}
		for _, e := range batch.Events {
			if e.KV.Modified <= delivered {
				b.Fatalf("revision %d came after everything up to %d was said to be delivered", e.KV.Modified,
					delivered)
			}
			if e.KV.Modified < last {
				b.Fatalf("revision %d came after %d", e.KV.Modified, last)
			}
			if e.KV.Modified > batch.Revision {
				b.Fatalf("revision %d came in a batch up to %d", e.KV.Modified, batch.Revision)
			}
			last = e.KV.Modified
		}
		delivered = batch.Revision
		events = append(events, batch.Events...)
	}
	return events
}

// replay returns what a listing becomes by events.
func replay(kvs []store.KV, events []store.Event) map[string]store.KV {
	state := map[string]store.KV{}
	for _, kv := range kvs {
		state[kv.Key] = kv
	}
	for _, e := range events {
		if e.Deleted {
			delete(state, e.KV.Key)
		} else {
			state[e.KV.Key] = e.KV
		}
	}
	return state
}

// differs returns how a listing differs from what it should hold, or "".
func differs(got []store.KV, want map[string]store.KV) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d keys, want %d", len(got), len(want))
	}
	for _, kv := range got {
		if w, there := want[kv.Key]; !there || !same(kv, w) {
			return fmt.Sprintf("%+v, want %+v", kv, w)
		}
	}
	return ""
}

func same(a, b store.KV) bool {
	return a.Key == b.Key && bytes.Equal(a.Value, b.Value) && a.Created == b.Created && a.Modified == b.Modified &&
		a.Lease == b.Lease
}
