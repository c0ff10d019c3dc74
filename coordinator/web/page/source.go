package page

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// staleAfter is from when on a page says that it is old: SAFE-3 is stricter, and is for deciders.
const staleAfter = 5 * time.Second

// known remembers groups as they were read, since decoding a spec costs more than all the rest of a
// row.
type known struct {
	mu     sync.Mutex
	groups map[string]story.Known
}

// of returns the groups that have a spec or a status, in order of name.
func (k *known) of(shard string, keys store.Keys, c *cache.Content) []story.Known {
	names := map[string]bool{}
	for name := range c.Groups {
		names[name] = true
	}
	for name := range c.Static {
		names[name] = true
	}
	for name := range c.Status {
		names[name] = true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	next := make(map[string]story.Known, len(names))
	all := make([]story.Known, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		g := story.Known{Name: name, Shard: shard, Stored: c.Groups[name], Static: c.Static[name], Status: c.Status[name]}
		if bad := c.Unreadable[keys.Status(name)]; bad != "" {
			g.StatusBad = errors.New(bad)
		}
		if old, seen := k.groups[name]; seen && old.Stored.Modified == g.Stored.Modified &&
			old.Static.Modified == g.Static.Modified && old.Status.Modified == g.Status.Modified &&
			(old.StatusBad == nil) == (g.StatusBad == nil) {
			g = old
		} else {
			g.Read()
		}
		next[name] = g
		all = append(all, g)
	}
	k.groups = next
	return all
}

// shardOf is what the problems of the shard follow from. The content is locked by the caller.
func (p *Pages) shardOf(c *cache.Content) *story.Shard {
	st := &story.Shard{
		Name: p.cfg.Shard, Revision: c.Revision, Shard: c.Shard, Served: c.Served,
		Groups: p.known.of(p.cfg.Shard, p.keys, c), Spoiled: map[string]error{}, Unreadable: map[string]error{},
		Secrets: make(map[string]store.Secret, len(c.Secrets)), Lacking: map[string]map[string][]string{},
	}
	for key, why := range c.Unreadable {
		kind, _, _ := p.keys.Split(key)
		if kind == store.KindRequests {
			st.Unreadable[key] = errors.New(why)
		} else {
			st.Spoiled[key] = errors.New(why)
		}
	}
	if kv, leads := store.LeaderNow(slices.Collect(maps.Values(c.Leaders))); leads {
		st.Leads = true
		var err error
		if st.Leader, err = store.Decode[store.Leader](kv); err != nil {
			st.Spoiled[kv.Key] = err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.Replicas)) {
		st.Replicas = append(st.Replicas, c.Replicas[id])
	}
	for _, id := range slices.Sorted(maps.Keys(c.Requests)) {
		st.Requests = append(st.Requests, c.Requests[id])
	}
	for _, id := range slices.Sorted(maps.Keys(c.Strays)) {
		st.Strangers.Strays = append(st.Strangers.Strays, c.Strays[id].Record)
	}
	for name, v := range c.Secrets {
		st.Secrets[name] = v.Record
	}
	for _, id := range slices.Sorted(maps.Keys(c.Reports)) {
		if r := c.Reports[id].Record; len(r.Files) > 0 {
			group := c.Instances[id].Record.Group
			if st.Lacking[group] == nil {
				st.Lacking[group] = map[string][]string{}
			}
			story.Lacks(st.Lacking[group], id, r.Files)
		}
	}
	return st
}

// truth says how far the cache can be relied on.
func (p *Pages) truth(st *story.Shard, now time.Time) Truth {
	heard, interrupted := p.deps.Replica.Cache().Heard()
	t := Truth{Shard: p.cfg.Shard, Replica: p.cfg.Replica, Heard: heard}
	t.Stale = interrupted != nil || now.Sub(heard) > staleAfter
	if st.Leads {
		t.Leader, t.Since = st.Leader.Record.Replica, st.Leader.Record.Since
	}
	return t
}

// oneOf returns the first of the words that the text is; "" if it is none of them.
func oneOf(text string, words ...string) string {
	for _, w := range words {
		if strings.EqualFold(text, w) {
			return w
		}
	}
	return ""
}
