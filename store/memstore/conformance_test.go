package memstore_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
	"github.com/leasehold/leasehold/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// proves DET-2
func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		db := memstore.New(memstore.Config{})
		t.Cleanup(db.Close)
		return db.Connect()
	})
}
