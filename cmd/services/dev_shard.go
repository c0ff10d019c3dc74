package services

import (
	"context"
	"errors"
	"os"

	"github.com/leasehold/leasehold/store"
)

// createShard creates the shard of a new data directory, and reports whether it did. In a data
// directory that was used before, an etcd without the shard has lost its data: the replica then
// waits, and nothing is created (SAFE-15).
func createShard(ctx context.Context, st store.Store, name, known string) (created bool, err error) {
	keys := store.KeysOf(name)
	_, err = st.Get(ctx, keys.Shard())
	if !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	const next = "restore the data directory from a backup; or remove it, and stop the machines of the last run by hand"
	if _, err := os.Stat(known); err == nil {
		return false, problem(next, "the embedded etcd has lost the shard %s, which it held before", name)
	}
	n, kind, err := store.LeaderRecords(ctx, st, keys)
	if err != nil {
		return false, err
	}
	if n > 0 {
		return false, problem(next, "the embedded etcd has lost the record of shard %s: there are %d keys below %s/",
			name, n, kind)
	}
	shard, err := store.NewShard(name, "")
	if err != nil {
		return false, err
	}
	if err := store.CreateShard(ctx, st, keys, shard); err != nil {
		return false, err
	}
	return true, nil
}
