package cli

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// group is a group's spec, and its status from the leader.
type group = story.Known

// recordOf returns the spec for JSON: as stored or, for a static group, merged.
func recordOf(g group) json.RawMessage {
	if g.IsStatic() && g.Bad == nil {
		return store.Encode(g.Spec)
	}
	if g.IsStatic() {
		return asJSON(g.Static.Value)
	}
	return asJSON(g.Stored.Value)
}

// groups reads all groups at one revision, ordered by name.
func (inv *Invocation) groups(ctx context.Context, keys store.Keys, at store.Revision) (
	[]group, store.Revision, error,
) {
	lists := map[string]store.Listing{}
	for _, kind := range []string{store.KindGroups, store.KindStatic, store.KindStatus} {
		l, err := inv.list(ctx, keys.Of(kind), at)
		if err != nil {
			return nil, 0, err
		}
		lists[kind], at = l, l.Revision
	}
	byName := map[string]*group{}
	named := func(key string) *group {
		_, name, _ := keys.Split(key)
		if byName[name] == nil {
			shard, _ := store.ShardOf(key)
			byName[name] = &group{Name: name, Shard: shard}
		}
		return byName[name]
	}
	for _, kv := range lists[store.KindGroups].KVs {
		named(kv.Key).Stored = kv
	}
	for _, kv := range lists[store.KindStatic].KVs {
		named(kv.Key).Static = kv
	}
	for _, kv := range lists[store.KindStatus].KVs {
		g := named(kv.Key)
		g.ReadStatus(kv)
		g.Raw = asJSON(kv.Value)
	}
	all := make([]group, 0, len(byName))
	for _, g := range byName {
		g.Read()
		all = append(all, *g)
	}
	slices.SortFunc(all, func(a, b group) int { return strings.Compare(a.Name, b.Name) })
	return all, at, nil
}

// group reads one group, or fails with NotFound.
func (inv *Invocation) group(ctx context.Context, name string) (group, error) {
	if !isName(name) {
		return group{}, inv.noGroup(ctx, name)
	}
	g := group{Name: name, Shard: inv.flags.Shard}
	var err error
	if g.Stored, err = inv.find(ctx, inv.keys().Group(name)); err != nil {
		return g, err
	}
	if g.Static, err = inv.find(ctx, inv.keys().Static(name)); err != nil {
		return g, err
	}
	status, err := inv.find(ctx, inv.keys().Status(name))
	if err != nil {
		return g, err
	}
	if g.Gone() && status.Modified == 0 {
		return g, inv.noGroup(ctx, name)
	}
	if status.Modified != 0 {
		g.ReadStatus(status)
		g.Raw = asJSON(status.Value)
	}
	g.Read()
	return g, nil
}

// isName reports whether a word from the command line can be the last element of a key.
func isName(name string) bool { return name != "" && !strings.ContainsAny(name, "/\x00") }

// farBack is as long as the journal is kept by default; farBackFlag is the flag for it.
const (
	farBack     = 7 * 24 * time.Hour
	farBackFlag = " --since 168h"
)

// decodeAll decodes all records of a listing.
func decodeAll[T any](l store.Listing) ([]store.Versioned[T], error) {
	all := make([]store.Versioned[T], 0, len(l.KVs))
	for _, kv := range l.KVs {
		v, err := store.Decode[T](kv)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// decodeInstances is decodeAll for the records of instances: a shard may have very many, and those
// of a group have common parts.
func decodeInstances(l store.Listing) ([]store.Versioned[store.Instance], error) {
	var specs store.InstanceSpecs
	all := make([]store.Versioned[store.Instance], 0, len(l.KVs))
	for _, kv := range l.KVs {
		v, err := specs.Decode(kv)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// decodeReadable is decodeAll for records that operators may write by hand. An unreadable one is
// included with its key and revision, and empty.
func decodeReadable[T any](l store.Listing) (all []store.Versioned[T], unreadable map[string]error) {
	all, unreadable = make([]store.Versioned[T], 0, len(l.KVs)), map[string]error{}
	for _, kv := range l.KVs {
		v, err := store.Decode[T](kv)
		if err != nil {
			unreadable[kv.Key] = err
			v.Record = *new(T)
		}
		all = append(all, v)
	}
	return all, unreadable
}

// decodeSome decodes the records that can be read.
func decodeSome[T any](l store.Listing) []store.Versioned[T] {
	all, unreadable := decodeReadable[T](l)
	return slices.DeleteFunc(all, func(v store.Versioned[T]) bool { return unreadable[v.Key] != nil })
}

// stored returns the values of a listing as they are, for JSON.
func stored(kvs []store.KV) []json.RawMessage {
	raw := make([]json.RawMessage, len(kvs))
	for i, kv := range kvs {
		raw[i] = asJSON(kv.Value)
	}
	return raw
}

// asJSON returns a value as stored. A value that is not JSON, as written by hand, becomes a string.
func asJSON(value []byte) json.RawMessage {
	switch {
	case len(value) == 0:
		return nil
	case json.Valid(value):
		return value
	default:
		text, _ := json.Marshal(string(value)) // a string can always be encoded
		return text
	}
}

// shards returns the names of the shards that a reading command covers.
func (inv *Invocation) shards(ctx context.Context, all bool) ([]string, error) {
	if !all {
		return []string{inv.flags.Shard}, nil
	}
	var names []string
	for from := store.Root; ; {
		key, err := inv.firstKey(ctx, store.Root, from)
		if errors.Is(err, store.ErrNotFound) {
			slices.Sort(names)
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		shard, ok := store.ShardOf(key)
		if !ok {
			from = key + "\x00"
			continue
		}
		names = append(names, shard)
		from = store.Root + shard + string('/'+1) // behind all keys of the shard
	}
}

// firstKey returns the first key below a prefix that does not sort before from.
func (inv *Invocation) firstKey(ctx context.Context, prefix, from string) (key string, err error) {
	err = inv.parts(ctx, prefix, from, 1, 0, func(part store.Part) bool {
		if len(part.KVs) > 0 {
			key = part.KVs[0].Key
		}
		return false
	})
	if err == nil && key == "" {
		err = store.ErrNotFound
	}
	return key, err
}
