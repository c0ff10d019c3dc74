package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

// group is a group as both sides see it: what operators want and what the leader says of it.
type group struct {
	Name   string
	Shard  string
	Spec   store.Group
	Stored store.KV // the zero KV: no such key in groups/
	Bad    error    // why the spec cannot be used, if so
	Status store.Versioned[store.Status]
	Raw    json.RawMessage // the status as stored
}

// groups reads all groups at one revision, ordered by name.
func (s *Session) groups(ctx context.Context, keys store.Keys, at store.Revision) ([]group, store.Revision, error) {
	specs, err := s.list(ctx, keys.Of(store.KindGroups), at)
	if err != nil {
		return nil, 0, err
	}
	statuses, err := s.list(ctx, keys.Of(store.KindStatus), specs.Revision)
	if err != nil {
		return nil, 0, err
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
	for _, kv := range specs.KVs {
		g := named(kv.Key)
		g.Stored = kv
		g.Spec, g.Bad = store.ReadGroup(kv.Value)
	}
	for _, kv := range statuses.KVs {
		g := named(kv.Key)
		if g.Status, err = store.Decode[store.Status](kv); err != nil {
			return nil, 0, err
		}
		g.Raw = kv.Value
	}
	all := make([]group, 0, len(byName))
	for _, g := range byName {
		all = append(all, *g)
	}
	slices.SortFunc(all, func(a, b group) int { return strings.Compare(a.Name, b.Name) })
	return all, specs.Revision, nil
}

// group reads one group, or fails with NotFound.
func (s *Session) group(ctx context.Context, name string) (group, error) {
	if !isName(name) {
		return group{}, noGroup(name)
	}
	g := group{Name: name, Shard: s.flags.Shard}
	var err error
	if g.Stored, err = s.find(ctx, s.keys().Group(name)); err != nil {
		return g, err
	}
	status, err := s.find(ctx, s.keys().Status(name))
	if err != nil {
		return g, err
	}
	if g.Stored.Modified == 0 && status.Modified == 0 {
		return g, noGroup(name)
	}
	if g.Stored.Modified != 0 {
		g.Spec, g.Bad = store.ReadGroup(g.Stored.Value)
	}
	if status.Modified != 0 {
		g.Raw = status.Value
		if g.Status, err = store.Decode[store.Status](status); err != nil {
			return g, err
		}
	}
	return g, nil
}

// isName says whether a word from the command line can be the last element of a key.
func isName(name string) bool { return name != "" && !strings.ContainsAny(name, "/\x00") }

func noGroup(name string) error {
	return failure(NotFound, "leasehold group list", "no group %q", name)
}

// farBack is as long as the journal is kept, unless the shard says otherwise; farBackFlag is how it is asked for.
const (
	farBack     = 7 * 24 * time.Hour
	farBackFlag = " --since 168h"
)

// noInstance says that there is no such instance. If there was one, the journal says what became of it.
func noInstance(id string) error {
	next := "leasehold instance list"
	if isName(id) {
		next = "leasehold events -i " + id + farBackFlag
	}
	return failure(NotFound, next, "no instance %q", id)
}

// decodeAll reads all records of a listing.
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

// stored is the values of a listing as they are, for JSON.
func stored(kvs []store.KV) []json.RawMessage {
	raw := make([]json.RawMessage, len(kvs))
	for i, kv := range kvs {
		raw[i] = asJSON(kv.Value)
	}
	return raw
}

// asJSON is a value as it is stored. What somebody wrote by hand and is no JSON is shown as text.
func asJSON(value []byte) json.RawMessage {
	switch {
	case len(value) == 0:
		return nil
	case json.Valid(value):
		return value
	default:
		text, _ := json.Marshal(string(value)) // a string can always be written
		return text
	}
}

// shards names the shards that a reading command looks at.
func (s *Session) shards(ctx context.Context, all bool) ([]string, error) {
	if !all {
		return []string{s.flags.Shard}, nil
	}
	// The store has no listing of names alone, so that this reads all that is there, journals included.
	l, err := s.list(ctx, store.Root, 0)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, kv := range l.KVs {
		if shard, ok := store.ShardOf(kv.Key); ok && !slices.Contains(names, shard) {
			names = append(names, shard)
		}
	}
	slices.Sort(names)
	return names, nil
}
