package trouble

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A test that damages records has the groups' files, and etcd's history to restore them from.
var ofRecords = []Kind{
	{
		// Hosts of leasehold server do not start without their data: see host-replaced.
		Name: "etcd-emptied", Weight: 1, Takes: []Part{Etcd, Operators, History}, Least: 2 * time.Second,
		Most: 12 * time.Second, On: Separate, Do: etcdEmptied,
	},
	{
		Name: "etcd-older", Weight: 1, Takes: []Part{Etcd, Operators, History}, Least: 4 * time.Second,
		Most: 10 * time.Second, Do: etcdOlder,
	},
	{
		Name: "records-deleted", Weight: 2, Takes: []Part{Operators, History}, Least: 2 * time.Second,
		Most: 12 * time.Second, Do: recordsDeleted,
	},
	{
		Name: "record-spoiled", Weight: 4, Takes: []Part{Operators, History}, Least: time.Second, Most: 8 * time.Second,
		Do: recordSpoiled,
	},
}

// etcdEmptied: all of etcd's data is removed while everything else runs. It is restored from an
// earlier snapshot, or the shard is recovered.
func etcdEmptied(ctx context.Context, s *Site) (string, func() error, error) {
	settings, err := s.Settings(ctx)
	if err != nil {
		return "", nil, err
	}
	snapshot := ""
	if s.Chance(50) {
		if snapshot, err = s.SaveSnapshot(ctx); err != nil {
			return "", nil, err
		}
	}
	err = s.EmptyEtcd()
	if snapshot == "" {
		return "and recovered", func() error { return s.Recover(settings) }, err
	}
	return "and restored from a snapshot", func() error {
		if err := s.RestoreSnapshot(snapshot); err != nil {
			return err
		}
		return s.PutRight()
	}, err
}

// etcdOlder: etcd's data is restored to a state before some machines were created and others
// removed. The shard puts itself on hold.
func etcdOlder(ctx context.Context, s *Site) (string, func() error, error) {
	snapshot, err := s.SaveSnapshot(ctx)
	if err != nil {
		return "", nil, err
	}
	name := group(s)
	was := s.Wanted()[name]
	err = s.Operator(ctx, "group", "scale", name, strconv.Itoa(was+2), "--confirm", name)
	if up := s.Cloud.Running(); len(up) > 0 {
		id := pick(s, up)
		err = errors.Join(err, s.Operator(ctx, "instance", "replace", id))
	}
	return fmt.Sprintf("than %s of %d", name, was+2), func() error {
		if err := s.RestoreSnapshot(snapshot); err != nil {
			return err
		}
		s.awaitHold(ctx, 20*time.Second)
		if err := s.OperatorMust("group", "scale", name, strconv.Itoa(was+2), "--confirm", name); err != nil {
			return err
		}
		if err := s.PutRight(); err != nil {
			return err
		}
		return s.OperatorMust("group", "scale", name, strconv.Itoa(was), "--confirm", name)
	}, err
}

// awaitHold waits until the shard is on hold, with a limit: its revision may have overtaken what
// was known.
func (s *Site) awaitHold(ctx context.Context, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		kv, err := s.Store.Get(ctx, s.Keys.Shard())
		if err == nil {
			if v, err := store.Decode[store.Shard](kv); err == nil && v.Record.Hold != nil {
				return
			}
		}
		if !wait(ctx, 250*time.Millisecond) {
			return
		}
	}
}

// deletedKinds are prefixes that an operator may delete, and whether only an operator can restore
// their content.
var deletedKinds = []struct {
	kind   string
	mended bool // by itself
}{
	{store.KindInstances, false},
	{store.KindInstances, false},
	{store.KindStatus, false},
	{store.KindSlots, false},
	{store.KindGroups, false},
	{store.KindJoined, false},
	{store.KindShard, false},
	{store.KindServed, true},
	{store.KindAlive, true},
	{store.KindReports, true},
	{store.KindTurns, true},
	{store.KindReplicas, true},
	{store.KindLeader, true},
}

// DeletedKinds returns the kinds of which all keys are deleted.
func DeletedKinds() (all []string) {
	for _, k := range deletedKinds {
		all = append(all, k.kind)
	}
	return slices.Compact(all)
}

// recordsDeleted: a prefix is deleted by hand, and restored from etcd's history.
func recordsDeleted(ctx context.Context, s *Site) (string, func() error, error) {
	k := pick(s, deletedKinds)
	prefix := prefixOf(s, k.kind)
	if k.kind == store.KindInstances && s.Chance(50) {
		prefix += group(s) + "-"
	}
	return deletePrefix(ctx, s, prefix, k.mended)
}

// DeleteAll deletes all keys of a kind, and restores them in the way of this kind.
func DeleteAll(ctx context.Context, s *Site, kind string) (string, func() error, error) {
	for _, k := range deletedKinds {
		if k.kind == kind {
			return deletePrefix(ctx, s, prefixOf(s, kind), k.mended)
		}
	}
	return "", nil, errNoTarget{kind}
}

// prefixOf returns the prefix of all keys of a kind.
func prefixOf(s *Site, kind string) string {
	if kind == store.KindShard || kind == store.KindServed {
		return s.Keys.Prefix() + kind
	}
	return s.Keys.Of(kind)
}

func deletePrefix(ctx context.Context, s *Site, prefix string, mended bool) (string, func() error, error) {
	var keys []string
	for _, kv := range s.Witness.Now().Of(prefix) {
		keys = append(keys, kv.Key)
	}
	if len(keys) == 0 {
		return "", nil, errNoTarget{"key below " + prefix}
	}
	before, err := s.DeleteByHand(ctx, keys)
	what := fmt.Sprintf("%s, %d keys", prefix, len(keys))
	if mended || before == 0 { // whether they were deleted is unknown
		return what, func() error { return s.PutRight() }, err
	}
	return what, func() error { return s.Repair(before) }, err
}

// Kinds of keys that can be spoiled. Original ones are repaired, derived ones are rewritten by
// their owners, and the others are not needed or end by themselves: they are restored by hand.
var (
	repairedKinds = []string{
		store.KindShard, store.KindGroups, store.KindSlots, store.KindInstances, store.KindJoined,
		store.KindSecrets,
	}
	renewedKinds = []string{store.KindStatus, store.KindServed, store.KindAlive, store.KindReports, store.KindReplicas}
	otherKinds   = []string{
		store.KindTurns, store.KindLeader, store.KindRequests, store.KindEvents, store.KindTokens,
		store.KindStrays, store.KindGone, store.KindExtras, store.KindStatic,
	}
)

// SpoiledKinds returns all kinds of keys, and "settings" for those within the shard's record.
func SpoiledKinds() []string {
	return slices.Concat(repairedKinds, renewedKinds, otherKinds, []string{settings})
}

const settings = "settings"

// The ways to spoil a record.
const (
	Garbage = "garbage"
	Empty   = "empty"
	Newer   = "newer" // of a schema that is not known yet
)

// SpoiledHow returns all of them.
func SpoiledHow() []string { return []string{Garbage, Empty, Newer} }

// recordSpoiled: one key is overwritten with something unreadable.
func recordSpoiled(ctx context.Context, s *Site) (string, func() error, error) {
	kind, how := pick(s, SpoiledKinds()), pick(s, SpoiledHow())
	return Spoil(ctx, s, kind, how)
}

// Spoil spoils one key of a kind, and restores it in the way of this kind.
func Spoil(ctx context.Context, s *Site, kind, how string) (string, func() error, error) {
	if kind == settings {
		return spoilSettings(ctx, s)
	}
	prefix := prefixOf(s, kind)
	var kv store.KV
	if all := s.Witness.Now().Of(prefix); len(all) > 0 {
		kv = pick(s, all)
	} else {
		kv = store.KV{Key: prefix + "unknown"}
	}
	at, err := s.WriteByHand(ctx, kv, spoiled(kv.Value, how))
	what := fmt.Sprintf("%s: %s", strings.TrimPrefix(kv.Key, s.Keys.Prefix()), how)
	if err != nil {
		if errors.Is(err, store.ErrUnknown) { // it may be there
			return what, func() error { return s.Repair(0) }, err
		}
		return what, nil, err
	}
	switch {
	case kv.Modified == 0:
		return what + ", which was not there", func() error { return s.backByHand(kv, at) }, nil
	case slices.Contains(repairedKinds, kind), how == Newer && (kind == store.KindStatus || kind == store.KindServed):
		return what, func() error { return s.Repair(0) }, nil
	case slices.Contains(renewedKinds, kind):
		return what, func() error { return errors.Join(s.AwaitReadable(kv.Key, at), s.PutRight()) }, nil
	default:
		return what, func() error { return s.backByHand(kv, at) }, nil
	}
}

// spoiled returns the spoiled value.
func spoiled(value []byte, how string) []byte {
	switch how {
	case Empty:
		return nil
	case Newer:
		record := map[string]any{}
		if json.Unmarshal(value, &record) != nil {
			record = map[string]any{}
		}
		record["schema"] = 99
		return store.Encode(record)
	default:
		return append([]byte("}garbage"), bytes.TrimPrefix(value, []byte("{"))...)
	}
}

// backByHand undoes what was written by hand.
func (s *Site) backByHand(kv store.KV, at store.Revision) error {
	return errors.Join(s.BackByHand(kv, at), s.PutRight())
}

// spoilSettings writes an invalid setting. What is in force stays in force (REC-20), until it is
// set again.
func spoilSettings(ctx context.Context, s *Site) (string, func() error, error) {
	kv, err := s.Store.Get(ctx, s.Keys.Shard())
	if err != nil {
		return "", nil, err
	}
	var record map[string]any
	if err := json.Unmarshal(kv.Value, &record); err != nil {
		return "", nil, err
	}
	all, _ := record["settings"].(map[string]any)
	if all == nil {
		return "", nil, errNoTarget{"setting"}
	}
	was, _ := all["provider_poll"].(string)
	all["provider_poll"] = "often"
	_, err = s.WriteByHand(ctx, kv, store.Encode(record))
	return "provider_poll is often", func() error {
		return errors.Join(s.OperatorMust("config", "set", "provider_poll="+was), s.PutRight())
	}, err
}
