package memstore_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
	"github.com/leasehold/leasehold/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// compactable is a client whose database the suite can compact.
type compactable struct {
	*memstore.Store
	db *memstore.Database
}

func (c compactable) Compact(_ context.Context, rev store.Revision) error {
	return c.db.Faults().Compact(rev)
}

// proves DET-2
func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		db := memstore.New(memstore.Config{})
		t.Cleanup(db.Close)
		return compactable{db.Connect(), db}
	})
}
