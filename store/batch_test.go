package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

// counting counts commits, and answers with an error in their place if one is set.
type counting struct {
	store.Store
	commits int
	err     error
}

func (c *counting) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	c.commits++
	if c.err != nil {
		return 0, c.err
	}
	return c.Store.Commit(ctx, txn)
}

func batchOf(n int) []*store.BatchPart {
	parts := make([]*store.BatchPart, n)
	for i := range parts {
		key := fmt.Sprintf("/k/%02d", i)
		parts[i] = &store.BatchPart{Txn: store.Txn{
			Conditions: []store.Condition{store.Absent(key)},
			Writes:     []store.Write{store.Put(key, nil)},
		}}
	}
	return parts
}

// A part that was overtaken, or is refused, keeps no other from being written, and gets the error
// that it would get alone.
func TestABatchWritesAllThatItCan(t *testing.T) {
	db := memstore.New(memstore.Config{})
	defer db.Close()
	st := &counting{Store: db.Connect()}
	lease, err := st.Grant(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	db.Faults().DropLease(lease.ID)
	for _, key := range []string{"/k/03", "/k/07"} {
		if _, err := st.Commit(t.Context(),
			store.Txn{Writes: []store.Write{store.Put(key, []byte("of another"))}}); err != nil {
			t.Fatal(err)
		}
	}
	parts := batchOf(16)
	parts[11].Txn.Writes[0].Lease = lease.ID
	st.commits = 0
	store.CommitBatch(t.Context(), st, parts)
	for i, p := range parts {
		var conflict *store.ConflictError
		switch i {
		case 3, 7:
			if !errors.As(p.Err, &conflict) || !slices.Equal(conflict.Keys, []string{p.Txn.Writes[0].Key}) {
				t.Errorf("part %d was overtaken, and has %v", i, p.Err)
			}
		case 11:
			if !errors.Is(p.Err, store.ErrLeaseGone) {
				t.Errorf("part %d is on a lease that has ended, and has %v", i, p.Err)
			}
		default:
			if kv, err := st.Get(t.Context(), p.Txn.Writes[0].Key); p.Err != nil || err != nil ||
				kv.Modified != p.Revision {
				t.Errorf("part %d: %v, at revision %d: %+v, %v", i, p.Err, p.Revision, kv, err)
			}
		}
	}
	if st.commits > 10 {
		t.Errorf("%d commits", st.commits)
	}
}

// What does not concern one part alone is not tried again in pieces: a store that has trouble is
// spared.
func TestABatchIsNotTriedInPieces(t *testing.T) {
	for _, err := range []error{
		store.ErrUnknown, store.ErrUnavailable, store.ErrFull, store.ErrDenied,
		&store.ConflictError{Keys: []string{"/other"}},
	} {
		st := &counting{err: err}
		parts := batchOf(8)
		store.CommitBatch(t.Context(), st, parts)
		if st.commits != 1 {
			t.Errorf("%v: %d commits", err, st.commits)
		}
		for i, p := range parts {
			if !errors.Is(p.Err, err) {
				t.Errorf("%v: part %d has %v", err, i, p.Err)
			}
		}
	}
}
