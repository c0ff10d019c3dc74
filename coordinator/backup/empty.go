package backup

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// incidental are the kinds of keys that a shard has without anything in it: coordinators write them
// as soon as they serve it, and hosts that may join have their tokens there.
var incidental = []string{
	store.KindShard, store.KindServed, store.KindLeader, store.KindReplicas, store.KindHosts, store.KindBackup,
}

// Replaces returns the ID of the empty shard that a restore replaces, "" if there is none. A shard
// with anything in it, or of the same ID, is an InTheWayError.
func (c Content) Replaces(ctx context.Context, s store.Store) (id string, err error) {
	v, id, err := c.empty(ctx, s, store.KeysOf(c.Shard))
	if v.Modified != 0 {
		id = v.Record.ID
	}
	return id, err
}

// empty returns the record of the empty shard that is there or, if a restore has removed that
// already, its ID.
func (c Content) empty(
	ctx context.Context, s store.Store, keys store.Keys,
) (there store.Versioned[store.Shard], removed string, err error) {
	kv, err := s.Get(ctx, keys.Shard())
	if errors.Is(err, store.ErrNotFound) {
		kv, err = s.Get(ctx, keys.Gone(keys.Shard()))
		if errors.Is(err, store.ErrNotFound) {
			return there, "", nil
		}
		if err != nil {
			return there, "", err
		}
		note, err := store.Decode[store.Gone](kv)
		return there, note.Record.ShardID, err
	}
	if err != nil {
		return there, "", err
	}
	there, err = store.Decode[store.Shard](kv)
	if err != nil || there.Record.ID == "" || there.Record.ID == c.ShardID {
		return there, "", &InTheWayError{kv.Key}
	}
	all, err := s.List(ctx, keys.Prefix(), 0)
	if err != nil {
		return there, "", err
	}
	for _, kv := range all.KVs {
		kind, _, _ := keys.Split(kv.Key)
		if !slices.Contains(incidental, kind) && (kind != store.KindEvents || !isElection(kv)) {
			return there, "", &InTheWayError{kv.Key}
		}
	}
	return there, "", nil
}

// isElection reports whether an entry of the journal is of the coordinators' own: which one leads.
func isElection(kv store.KV) bool {
	v, err := store.Decode[store.JournalEntry](kv)
	e := v.Record
	return err == nil && strings.HasPrefix(e.Rule, "ELECT-") && e.Group == "" && e.Instance == ""
}

// clear removes the record of an empty shard, and returns its ID. It leaves a note, which gives the
// ID to a restore that is repeated. If something was put into the shard in the meantime, clear
// writes the record again.
func (c Content) clear(ctx context.Context, s store.Store, keys store.Keys, hold store.Hold) (string, error) {
	there, removed, err := c.empty(ctx, s, keys)
	if err != nil {
		return "", err
	}
	if there.Modified == 0 {
		return removed, c.inTheWay(ctx, s, keys)
	}
	note := keys.Gone(keys.Shard())
	if _, err := s.Commit(ctx, store.Txn{
		Conditions: []store.Condition{there.Unchanged()},
		Writes: []store.Write{store.Delete(there.Key), store.Put(note, store.Encode(store.Gone{
			Schema: store.Schema, Revision: there.Modified, Rule: "DAY-2", ShardID: there.Record.ID, By: hold.By, At: hold.At,
			Why: "it was empty, and another was restored in its place",
		}))},
	}); err != nil {
		return "", err
	}
	err = c.inTheWay(ctx, s, keys)
	var inTheWay *InTheWayError
	if errors.As(err, &inTheWay) {
		_, back := s.Commit(ctx, store.Txn{
			Conditions: []store.Condition{store.Absent(there.Key)},
			Writes:     []store.Write{store.Put(there.Key, store.Encode(there.Record)), store.Delete(note)},
		})
		err = errors.Join(err, back)
	}
	return there.Record.ID, err
}
