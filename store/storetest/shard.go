package storetest

import (
	"errors"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// CreateShard creates a shard, as leasehold init does, unless there is one of this name.
func CreateShard(t testing.TB, s store.Store, name string) {
	t.Helper()
	shard, err := store.NewShard(name, "")
	if err == nil {
		err = store.CreateShard(t.Context(), s, store.KeysOf(name), shard)
	}
	if err != nil && !errors.Is(err, store.ErrExists) {
		t.Fatal(err)
	}
}
