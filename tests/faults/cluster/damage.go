package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/coordinator/recovery"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/stage"
)

// DeleteByHand deletes keys as an operator does with etcdctl, and returns the last revision at
// which they existed; 0 if nothing was deleted.
func (c *Cluster) DeleteByHand(ctx context.Context, keys []string) (before store.Revision, err error) {
	var txn store.Txn
	for _, key := range keys {
		txn.Writes = append(txn.Writes, store.Delete(key))
	}
	deleted, err := c.Store.Commit(ctx, txn)
	if err != nil {
		return 0, err
	}
	return deleted - 1, nil
}

// WriteByHand overwrites a key, if it is still as it was read. The key keeps its lease.
func (c *Cluster) WriteByHand(ctx context.Context, kv store.KV, value []byte) (store.Revision, error) {
	w := store.Put(kv.Key, value)
	if kv.Lease != 0 {
		w = store.PutLeased(kv.Key, value, kv.Lease)
	}
	return c.Store.Commit(ctx, store.Txn{
		Conditions: []store.Condition{store.At(kv.Key, kv.Modified)},
		Writes:     []store.Write{w},
	})
}

// BackByHand undoes an overwrite at a revision, unless the key was written or removed since.
func (c *Cluster) BackByHand(kv store.KV, at store.Revision) error {
	w := store.Put(kv.Key, kv.Value)
	switch {
	case kv.Modified == 0:
		w = store.Delete(kv.Key)
	case kv.Lease != 0:
		w = store.PutLeased(kv.Key, kv.Value, kv.Lease)
	}
	return c.insist(func(ctx context.Context) error {
		_, err := c.Store.Commit(ctx, store.Txn{
			Conditions: []store.Condition{store.At(kv.Key, at)},
			Writes:     []store.Write{w},
		})
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrLeaseGone) {
			return nil
		}
		return err
	})
}

// Settings returns the shard's settings.
func (c *Cluster) Settings(ctx context.Context) (store.ShardSettings, error) {
	kv, err := c.Store.Get(ctx, c.Keys.Shard())
	if err != nil {
		return store.ShardSettings{}, err
	}
	shard, err := store.Decode[store.Shard](kv)
	return shard.Record.Settings, err
}

// Recover follows the runbook for an etcd whose data is lost: the shard is created again under its
// old ID, with its settings, groups are applied from their files, machines are put back into their
// slots, and the shard is released.
func (c *Cluster) Recover(settings store.ShardSettings) error {
	if err := c.OperatorMust("recover", "--confirm=default"); err != nil {
		return err
	}
	err := c.insist(func(ctx context.Context) error {
		kv, err := c.Store.Get(ctx, c.Keys.Shard())
		if err != nil {
			return err
		}
		shard, err := store.Decode[store.Shard](kv)
		if err != nil {
			return err
		}
		shard.Record.Settings = settings
		_, err = c.WriteByHand(ctx, kv, store.Encode(shard.Record))
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.Wanted())) {
		if err := c.ApplyAgain(name); err != nil {
			return err
		}
	}
	c.awaitClaims(agentsReport)
	return c.PutRight()
}

const (
	// agentsReport is how long an operator waits until agents report: several times reconnect_max.
	agentsReport = 15 * time.Second
	// strange is how long a machine has no record before an operator acts.
	strange = 3 * time.Second
	// calm is how long there must be nothing to do.
	calm = 2 * time.Second
)

// awaitClaims waits until every running machine could be put into its slot, with a limit, because
// some may be silent.
func (c *Cluster) awaitClaims(within time.Duration) {
	late := time.Now().Add(within)
	for time.Now().Before(late) && c.T.Context().Err() == nil {
		able := map[string]bool{}
		for _, m := range c.candidates() {
			able[m.Instance] = m.Adoptable() && m.Source == recovery.FromSeal
		}
		if up := c.Cloud.Running(); len(able) > 0 &&
			!slices.ContainsFunc(up, func(id string) bool { return !able[id] }) {
			return
		}
		c.Pass(500 * time.Millisecond)
	}
}

// candidates returns the machines without a record, as `leasehold recover` shows them; nil on an
// error.
func (c *Cluster) candidates() (all []recovery.Candidate) {
	out, err := c.Try("recover", "-o", "json")
	if err != nil || json.Unmarshal([]byte(out), &all) != nil {
		return nil
	}
	return all
}

// PutRight does what an operator does after the records are restored as far as possible: it adopts
// machines without a record, removes those without a place, and releases a hold. It goes on until
// nothing is left to do.
func (c *Cluster) PutRight() error {
	late := time.Now().Add(stage.Longest)
	since := map[string]time.Time{} // since when a machine has no record
	quiet := time.Now()
	for {
		left, err := c.putRight(since)
		switch {
		case err != nil:
			left = err.Error()
			quiet = time.Now()
		case left != "":
			quiet = time.Now()
		case time.Since(quiet) > calm:
			return nil
		}
		if c.T.Context().Err() != nil {
			return c.T.Context().Err()
		}
		if time.Now().After(late) {
			return fmt.Errorf("%s after the damage an operator had still to do: %s", stage.Longest, left)
		}
		c.Pass(500 * time.Millisecond)
	}
}

// putRight does one round, and returns what is left to do.
func (c *Cluster) putRight(since map[string]time.Time) (left string, err error) {
	ctx, cancel := context.WithTimeout(c.T.Context(), 5*time.Second)
	defer cancel()
	shard, records, err := c.recorded(ctx)
	if err != nil {
		return "", err
	}
	var strangers, due []string
	there := c.Cloud.Existing()
	maps.DeleteFunc(since, func(id string, _ time.Time) bool {
		_, known := records[id]
		return known || !slices.Contains(there, id)
	})
	for _, id := range there {
		if _, known := records[id]; known {
			continue
		}
		if since[id].IsZero() {
			since[id] = time.Now()
		}
		strangers = append(strangers, id)
		if time.Since(since[id]) > strange {
			due = append(due, id)
		}
	}
	able := 0
	if len(strangers) > 0 {
		for _, m := range c.candidates() {
			// The leader may refuse one in place of an instance whose machine runs, however often it is
			// ordered.
			if m.Adoptable() && (m.InPlaceOf == "" || !slices.Contains(due, m.Instance)) {
				able++
			}
		}
	}
	switch {
	case able > 0:
		_ = c.Operator(ctx, "instance", "adopt", "--all") // the next round sees the result
		return fmt.Sprintf("%d machines to be adopted", able), nil
	case shard.Hold != nil && len(due) == len(strangers):
		return "the shard is on hold: " + shard.Hold.Why, c.Operator(ctx, "release", "--confirm=default")
	case shard.Hold != nil:
		return fmt.Sprintf("machines without a record: %v", strangers), nil
	}
	for _, id := range due {
		_ = c.Operator(ctx, "instance", "adopt", id) // it has no slot, or its slot is taken
		since[id] = time.Now()
	}
	for id, in := range records {
		// One whose workload has failed never runs: what is on demand is not healed (REC-2).
		if !in.Managed && (in.Phase == store.Checking || in.Phase == store.Running) {
			_ = c.Operator(ctx, "instance", "delete", id, "--confirm", id)
		}
		if !in.Managed {
			left = id + " is of no group"
		}
	}
	if len(strangers) > 0 {
		left = fmt.Sprintf("machines without a record: %v", strangers)
	}
	return left, nil
}

// recorded returns the shard and its instances. An unreadable one counts as existing.
func (c *Cluster) recorded(ctx context.Context) (shard store.Shard, instances map[string]store.Instance, err error) {
	kv, err := c.Store.Get(ctx, c.Keys.Shard())
	if err != nil {
		return shard, nil, err
	}
	v, err := store.Decode[store.Shard](kv)
	if err != nil {
		return shard, nil, err
	}
	listing, err := c.Store.List(ctx, c.Keys.Of(store.KindInstances), 0)
	if err != nil {
		return shard, nil, err
	}
	instances = map[string]store.Instance{}
	for _, kv := range listing.KVs {
		_, id, _ := c.Keys.Split(kv.Key)
		in, err := store.Decode[store.Instance](kv)
		if err != nil {
			in.Record.Managed = true
		}
		instances[id] = in.Record
	}
	return v.Record, instances, nil
}

// Repair restores records from etcd's history: all that were lost or spoiled since a revision or,
// with 0, all that are known to be damaged.
func (c *Cluster) Repair(at store.Revision) error {
	args := []string{"repair"}
	if at != 0 {
		args = append(args, "--at", strconv.FormatInt(int64(at), 10))
	}
	if err := c.OperatorMust(append(args, "--confirm=default")...); err != nil {
		return err
	}
	return c.PutRight()
}

// AwaitReadable waits until a spoiled key is gone or readable again.
func (c *Cluster) AwaitReadable(key string, spoiled store.Revision) error {
	return c.insist(func(ctx context.Context) error {
		kv, err := c.Store.Get(ctx, key)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil
		case err != nil:
			return err
		case kv.Modified == spoiled:
			return fmt.Errorf("%s was spoiled, and is still as it was at revision %d", key, spoiled)
		}
		return nil
	})
}
