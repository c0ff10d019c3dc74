package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// kinds are the kinds of keys in a backup. What the last leader left for the next one (served)
// means nothing in another etcd.
var kinds = slices.DeleteFunc(store.DurableKinds(), func(kind string) bool { return kind == store.KindServed })

// Content is a shard at one revision.
type Content struct {
	Shard    string // the shard's name
	ShardID  string
	At       time.Time
	Revision store.Revision
	Program  string // the version of the program that made it
	Entries  []Entry
	Hold     bool // the shard was on hold
}

// Entry is one key.
type Entry struct {
	Key      string // below the shard's prefix, such as groups/web
	Value    []byte
	Modified store.Revision
}

// Lister lists all keys with a prefix at one revision, or at the newest for 0.
type Lister func(ctx context.Context, prefix string, at store.Revision) (store.Listing, error)

// ErrNoShard means that there is no readable shard to back up.
var ErrNoShard = errors.New("there is no such shard in this etcd")

// restarts is how often reading restarts when its revision is compacted meanwhile.
const restarts = 3

// Take reads a shard.
func Take(ctx context.Context, list Lister, shard, program string, now time.Time) (c Content, err error) {
	for attempt := 0; ; attempt++ {
		c, err = take(ctx, list, store.KeysOf(shard), shard)
		if attempt >= restarts || !errors.Is(err, store.ErrCompacted) {
			break
		}
	}
	c.At, c.Program = now.UTC(), program
	return c, err
}

func take(ctx context.Context, list Lister, keys store.Keys, shard string) (Content, error) {
	c := Content{Shard: shard}
	for _, kind := range kinds {
		prefix := keys.Of(kind)
		if kind == store.KindShard {
			prefix = keys.Shard()
		}
		l, err := list(ctx, prefix, c.Revision)
		if err != nil {
			return c, err
		}
		c.Revision = l.Revision
		for _, kv := range l.KVs {
			if k, name, ok := keys.Split(kv.Key); !ok || k != kind || (name == "") != (kind == store.KindShard) {
				continue // another key with the same prefix
			}
			c.Entries = append(c.Entries,
				Entry{Key: kv.Key[len(keys.Prefix()):], Value: kv.Value, Modified: kv.Modified})
		}
	}
	record, err := c.record()
	c.ShardID, c.Hold = record.ID, record.Hold != nil
	return c, err
}

// record returns the shard's own record.
func (c Content) record() (store.Shard, error) {
	i := slices.IndexFunc(c.Entries, func(e Entry) bool { return e.Key == store.KindShard })
	if i < 0 {
		return store.Shard{}, fmt.Errorf("shard %s: %w", c.Shard, ErrNoShard)
	}
	v, err := store.Decode[store.Shard](store.KV{Key: store.KeysOf(c.Shard).Shard(), Value: c.Entries[i].Value})
	return v.Record, err
}

// Count returns the number of keys of a kind.
func (c Content) Count(kind string) (n int) {
	for _, e := range c.Entries {
		if k, _, ok := store.KeysOf(c.Shard).Split(store.KeysOf(c.Shard).Prefix() + e.Key); ok && k == kind {
			n++
		}
	}
	return n
}
