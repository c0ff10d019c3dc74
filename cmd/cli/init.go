package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/store"
)

// Init is the command init (SAFE-15): coordinators create no shard, so that an etcd that has lost
// its data is never taken for a new one.
type Init struct {
	Confirm []string `help:"Confirm a new, empty shard where coordinators wait for one from a backup." placeholder:"SHARD"`
}

const restoreNext = "leasehold restore FILE"

// Run creates the shard.
func (c *Init) Run(ctx context.Context, inv *Invocation) error {
	keys := inv.keys()
	kv, err := inv.find(ctx, keys.Shard())
	if err != nil {
		return err
	}
	if kv.Modified != 0 {
		return failure(Conflict, "leasehold status", "shard %s already exists", inv.flags.Shard)
	}
	if err := inv.refuseOverRemains(ctx, keys, slices.Contains(c.Confirm, inv.flags.Shard)); err != nil {
		return err
	}
	shard, err := store.NewShard(inv.flags.Shard, "")
	if err != nil {
		return err
	}
	err = inv.ask(ctx, "create the shard", "create shard "+inv.flags.Shard,
		func(ctx context.Context, st store.Store) error {
			return store.CreateShard(ctx, st, keys, shard)
		})
	if errors.Is(err, store.ErrExists) {
		return failure(Conflict, "leasehold status", "shard %s already exists: another command has just created it",
			inv.flags.Shard)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(inv.env.Stdout, "%s created\n", inv.flags.Shard)
	inv.note("coordinators that wait for it start serving; create a group with: leasehold group apply -f FILE")
	return nil
}

// refuseOverRemains refuses to create a shard again whose record was lost: its machines have the
// tag of the old ID, and the new shard would not recognize them. Where coordinators wait for one
// from a backup, confirmed says that a new one is wanted nevertheless.
func (inv *Invocation) refuseOverRemains(ctx context.Context, keys store.Keys, confirmed bool) error {
	var remains int
	var kind string
	err := inv.ask(ctx, "read the shard", inv.reading(keys.Prefix()),
		func(ctx context.Context, st store.Store) (err error) {
			remains, kind, err = store.LeaderRecords(ctx, st, keys)
			return err
		})
	if err != nil {
		return err
	}
	if remains > 0 {
		return failure(Conflict, "leasehold status says how to restore it",
			"shard %s has lost its record: there are %d keys below %s/, whose machines carry the old ID", inv.flags.Shard,
			remains, kind)
	}
	replicas, err := inv.list(ctx, keys.Of(store.KindReplicas), 0)
	if err != nil {
		return err
	}
	for _, kv := range replicas.KVs {
		r, err := store.Decode[store.Replica](kv)
		switch {
		case err != nil || r.Record.Waits == nil:
		case r.Record.Waits.Restore && !confirmed:
			return failure(Conflict, restoreNext+"; if there is no backup: leasehold init --confirm="+inv.flags.Shard,
				"this etcd was made for a shard from a backup, and replica %s waits for it", r.Record.ID)
		case r.Record.Waits.ShardID != "":
			return failure(Conflict, "leasehold status says how to restore it",
				"shard %s was lost: replica %s waits for it, with ID %s", inv.flags.Shard, r.Record.ID,
				r.Record.Waits.ShardID)
		}
	}
	return nil
}
