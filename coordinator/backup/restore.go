package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// One transaction of a restore: well below etcd's limit.
const (
	batchKeys  = 50
	batchBytes = 512 << 10
)

// InTheWayError names a key of the shard that etcd holds with another value than the backup.
type InTheWayError struct{ Key string }

func (e *InTheWayError) Error() string {
	return fmt.Sprintf("etcd holds %s already: a backup is restored where there is no such shard, or an empty one", e.Key)
}

// Restore writes the content into an etcd that does not hold the shard, or holds an empty one of
// the same name, which it replaces. The shard is on hold. It overwrites nothing else; after
// an interruption it may be repeated with the same backup. progress receives the number of keys
// that are done.
func (c Content) Restore(ctx context.Context, s store.Store, hold store.Hold, progress func(done, all int)) error {
	keys := store.KeysOf(c.Shard)
	shard, err := c.record()
	if err != nil {
		return err
	}
	replaced, err := c.clear(ctx, s, keys, hold)
	if err != nil {
		return err
	}
	shard.Hold, shard.Replaces = &hold, replaced
	shard.Generation++
	// What an operator acknowledged was seen at a revision of the old etcd. Here it would
	// acknowledge damage that no one has seen (SAFE-15).
	shard.Reviewed = nil
	statuses := map[string]store.Status{} // by group
	at := map[string]store.Revision{}     // of groups/, as the backup has it
	var writes []store.Write
	for _, e := range c.Entries {
		kind, name, _ := strings.Cut(e.Key, "/")
		switch kind {
		case store.KindShard:
			continue
		case store.KindStatus:
			if v, err := store.Decode[store.Status](store.KV{Key: e.Key, Value: e.Value}); err == nil {
				statuses[name] = v.Record
			}
			continue
		case store.KindGroups:
			at[name] = e.Modified
		}
		writes = append(writes, store.Put(keys.Prefix()+e.Key, e.Value))
	}
	all := len(writes) + len(statuses) + 1
	restored := map[string]store.Revision{}
	done := 0
	put := func(writes []store.Write) error {
		for len(writes) > 0 {
			n := batch(writes)
			if err := putAbsent(ctx, s, writes[:n], restored); err != nil {
				return err
			}
			writes, done = writes[n:], done+n
			progress(done, all)
		}
		return nil
	}
	if err := put(writes); err != nil {
		return err
	}
	var rest []store.Write
	for _, name := range slices.Sorted(maps.Keys(statuses)) {
		st := renewed(statuses[name], at[name], restored[keys.Group(name)])
		rest = append(rest, store.Put(keys.Status(name), store.Encode(st)))
	}
	if err := put(rest); err != nil {
		return err
	}
	if err := put([]store.Write{store.Put(keys.Shard(), store.Encode(shard))}); err != nil || replaced == "" {
		return err
	}
	_, _ = s.Commit(ctx, store.Txn{Writes: []store.Write{store.Delete(keys.Gone(keys.Shard()))}}) // it may stay
	return nil
}

// renewed returns the part of a group's status that is valid in another etcd: which spec is in
// force, and the last good one. Revisions of the old etcd mean nothing there. Without a count of
// records no instance is created in the group before its provider has listed all machines
// (SAFE-15).
func renewed(old store.Status, was, is store.Revision) store.Status {
	st := store.Status{
		Schema: old.Schema, Group: old.Group, Accepted: old.Accepted, State: old.State, LastGood: old.LastGood,
		Scale: old.Scale,
		Since: old.Since,
	}
	if old.AcceptedRevision == was {
		st.AcceptedRevision = is
	}
	if st.LastGood != nil {
		good := *st.LastGood
		good.Revision = 0
		if old.LastGood.Revision == was {
			good.Revision = is
		}
		st.LastGood = &good
	}
	return st
}

// inTheWay fails if etcd holds keys of the shard that the backup does not have. Keys that waiting
// coordinators write do not count.
func (c Content) inTheWay(ctx context.Context, s store.Store, keys store.Keys) error {
	own := map[string]bool{}
	for _, e := range c.Entries {
		own[keys.Prefix()+e.Key] = true
	}
	for _, kind := range kinds {
		prefix := keys.Of(kind)
		if kind == store.KindShard {
			prefix = keys.Shard()
		}
		l, err := s.List(ctx, prefix, 0)
		if err != nil {
			return err
		}
		for _, kv := range l.KVs {
			if k, _, _ := keys.Split(kv.Key); k == kind && (!own[kv.Key] || kind == store.KindShard) {
				return &InTheWayError{kv.Key}
			}
		}
	}
	return nil
}

// batch returns how many writes one transaction takes.
func batch(writes []store.Write) int {
	size := 0
	for i, w := range writes {
		if size += len(w.Value); i > 0 && (size > batchBytes || i >= batchKeys) {
			return i
		}
	}
	return len(writes)
}

// putAbsent writes absent keys, and treats those that have their value already as done.
func putAbsent(ctx context.Context, s store.Store, writes []store.Write, at map[string]store.Revision) error {
	txn := store.Txn{Writes: writes}
	for _, w := range writes {
		txn.Conditions = append(txn.Conditions, store.Absent(w.Key))
	}
	rev, err := s.Commit(ctx, txn)
	if err == nil {
		for _, w := range writes {
			at[w.Key] = rev
		}
		return nil
	}
	if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrUnknown) {
		return err
	}
	for _, w := range writes {
		kv, err := s.Get(ctx, w.Key)
		if errors.Is(err, store.ErrNotFound) {
			txn := store.Txn{Conditions: []store.Condition{store.Absent(w.Key)}, Writes: []store.Write{w}}
			kv = store.KV{Value: w.Value}
			kv.Modified, err = s.Commit(ctx, txn)
		}
		if err != nil {
			return err
		}
		if !bytes.Equal(kv.Value, w.Value) {
			return &InTheWayError{w.Key}
		}
		at[w.Key] = kv.Modified
	}
	return nil
}
