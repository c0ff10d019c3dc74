package view

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// StaleAfter is the age from which data is shown as old. SAFE-3, which is for decisions, is
// stricter.
const StaleAfter = 5 * time.Second

// Source derives views from data in memory.
type Source struct {
	name    string
	keys    store.Keys
	cache   *cache.Cache
	journal *journal.Memory
	known   known
	trends  trends
	drills  drills
	members atomic.Pointer[store.Members]
}

// New returns a source of views of a shard.
func New(shard string, c *cache.Cache, j *journal.Memory) *Source {
	return &Source{name: shard, keys: store.KeysOf(shard), cache: c, journal: j}
}

// Members records the latest answers of etcd's members.
func (s *Source) Members(m store.Members) { s.members.Store(&m) }

// Truth says how far the shown data can be relied on.
type Truth struct {
	Shard  string    `json:"shard"`
	Leader string    `json:"leader,omitempty"` // "": no leader
	Since  time.Time `json:"since,omitzero"`   // when it began to lead
	Heard  time.Time `json:"heard,omitzero"`   // when etcd last sent anything
	Stale  bool      `json:"stale"`
}

// Truth says how far the data in memory can be relied on.
func (s *Source) Truth(now time.Time) Truth {
	heard, interrupted := s.cache.Heard()
	t := Truth{Shard: s.name, Heard: heard}
	t.Stale = interrupted != nil || now.Sub(heard) > StaleAfter
	s.cache.View(func(c *cache.Content) {
		if kv, leads := store.LeaderNow(slices.Collect(maps.Values(c.Leaders))); leads {
			leader, _ := store.Decode[store.Leader](kv) // unreadable records are a problem of their own
			t.Leader, t.Since = leader.Record.Replica, leader.Record.Since
		}
	})
	return t
}

// known caches decoded groups, since decoding a spec costs more than all the rest of a row.
type known struct {
	mu     sync.Mutex
	groups map[string]story.Known
}

// of returns the groups that have a spec or a status, ordered by name.
func (k *known) of(shard string, keys store.Keys, c *cache.Content) []story.Known {
	names := c.GroupNames()
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

// shardOf returns what the problems of the shard follow from. The content is locked by the caller.
func (s *Source) shardOf(c *cache.Content) *story.Shard {
	st := &story.Shard{
		Name: s.name, Revision: c.Revision, Shard: c.Shard, Served: c.Served, Backup: c.Backup,
		Etcd:   s.members.Load(),
		Groups: s.known.of(s.name, s.keys, c), Spoiled: map[string]error{}, Unreadable: map[string]error{},
		Secrets: make(map[string]store.Secret, len(c.Secrets)), Lacking: map[string]map[string][]string{},
	}
	for key, why := range c.Unreadable {
		kind, _, _ := s.keys.Split(key)
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
	for _, name := range slices.Sorted(maps.Keys(c.Webhooks)) {
		st.Webhooks = append(st.Webhooks, c.Webhooks[name])
	}
	for _, id := range slices.Sorted(maps.Keys(c.Extras)) {
		_, heard := c.Strays[id]
		if _, recorded := c.Instances[id]; !heard && !recorded {
			st.Strangers.AddExtra(c.Extras[id].Record)
		}
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
