package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
)

// change is one change of one key, and when the test received it.
type change struct {
	store.Event
	kind, name string
	heard      time.Time
}

// noted is an entry of the journal.
type noted struct {
	store.JournalEntry
	rev store.Revision // when it was written, as opposed to the revision it was decided on
}

func (n noted) String() string {
	text := fmt.Sprintf("%s rev %d (on %d) %s %s %s: %s", n.At.Format("15:04:05.000"), n.rev, n.Revision, n.Rule,
		n.Instance+n.groupAlone(), n.What, n.Why)
	if len(n.Evidence) > 0 {
		text += " [" + strings.Join(n.Evidence, "; ") + "]"
	}
	return text + " by " + n.By
}

func (n noted) groupAlone() string {
	if n.Instance != "" {
		return ""
	}
	return n.Group
}

// history is everything that happened in one shard since its etcd was empty. It follows etcd
// through restarts and faults.
type history struct {
	keys store.Keys

	mu       sync.Mutex
	moved    chan struct{} // closed and replaced with each change
	revision store.Revision
	changes  []change
	journal  []noted
	current  map[string]store.KV
	broken   error // what cannot be read, or was missed
	replaced bool  // the test has replaced etcd's data, so that the history ends there
}

func newHistory(keys store.Keys) *history {
	return &history{keys: keys, moved: make(chan struct{}), current: map[string]store.KV{}}
}

// follow records everything until ctx ends. Nothing is compacted during a test, so that nothing is
// missed.
func (h *history) follow(ctx context.Context, s store.Store) {
	for b := range s.Watch(ctx, store.Root, 1) {
		h.take(b)
	}
}

func (h *history) take(b store.Batch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if b.Err != nil && !(h.replaced && errors.Is(b.Err, store.ErrCompacted)) {
		h.broken = errors.Join(h.broken, fmt.Errorf("watch: %w", b.Err))
	}
	now := time.Now()
	for _, e := range b.Events {
		kind, name, ok := h.keys.Split(e.KV.Key)
		if !ok {
			continue
		}
		h.changes = append(h.changes, change{Event: e, kind: kind, name: name, heard: now})
		if e.Deleted {
			delete(h.current, e.KV.Key)
			continue
		}
		h.current[e.KV.Key] = e.KV
		if kind != store.KindEvents {
			continue
		}
		v, err := store.Decode[store.JournalEntry](e.KV)
		h.broken = errors.Join(h.broken, err)
		h.journal = append(h.journal, noted{v.Record, e.KV.Modified})
	}
	if b.Revision > h.revision {
		h.revision = b.Revision
	}
	close(h.moved)
	h.moved = make(chan struct{})
}

// next is closed when there is more than at the time of the call.
func (h *history) next() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.moved
}

// now returns the revision up to which everything is known.
func (h *history) now() store.Revision {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.revision
}

// entries returns the journal's entries after a revision for which a property holds, in order.
func (h *history) entries(after store.Revision, property func(noted) bool) []noted {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []noted
	for _, n := range h.journal {
		if n.rev > after && property(n) {
			out = append(out, n)
		}
	}
	return out
}

// changesOf returns the changes of keys of a kind after a revision, in order.
func (h *history) changesOf(kind string, after store.Revision) []change {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []change
	for _, c := range h.changes {
		if c.kind == kind && c.KV.Modified > after {
			out = append(out, c)
		}
	}
	return out
}

// currentOf returns the present records of a kind, by name.
func currentOf[T any](h *history, kind string) map[string]store.Versioned[T] {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]store.Versioned[T]{}
	for key, kv := range h.current {
		k, name, _ := h.keys.Split(key)
		if k != kind {
			continue
		}
		v, err := store.Decode[T](kv)
		if err != nil {
			continue // a spec made invalid on purpose, say
		}
		out[name] = v
	}
	return out
}

// instances returns the records of a group's instances, in order of ID.
func (h *history) instances(group string) []store.Versioned[store.Instance] {
	var out []store.Versioned[store.Instance]
	for _, v := range currentOf[store.Instance](h, store.KindInstances) {
		if v.Record.Group == group {
			out = append(out, v)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Record.ID < out[j].Record.ID })
	return out
}

func (h *history) ids(group string) []string {
	var out []string
	for _, v := range h.instances(group) {
		out = append(out, v.Record.ID)
	}
	return out
}

// instance returns the record of an instance; present is false if there is none.
func (h *history) instance(id string) store.Versioned[store.Instance] {
	return currentOf[store.Instance](h, store.KindInstances)[id]
}

func (h *history) alive(id string) store.Versioned[store.Alive] {
	return currentOf[store.Alive](h, store.KindAlive)[id]
}

func (h *history) status(group string) store.Versioned[store.Status] {
	return currentOf[store.Status](h, store.KindStatus)[group]
}

// everRecorded returns the IDs of all instances that ever had a record in the shard, in order of
// ID.
func (h *history) everRecorded() []string {
	var out []string
	for _, c := range h.changesOf(store.KindInstances, 0) {
		if !slices.Contains(out, c.name) {
			out = append(out, c.name)
		}
	}
	slices.Sort(out)
	return out
}

// leader returns the replica that leads now; "" if none does.
func (h *history) leader() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var kvs []store.KV
	for key, kv := range h.current {
		if k, _, _ := h.keys.Split(key); k == store.KindLeader {
			kvs = append(kvs, kv)
		}
	}
	kv, ok := store.LeaderNow(kvs)
	if !ok {
		return ""
	}
	v, err := store.Decode[store.Leader](kv)
	if err != nil {
		return ""
	}
	return v.Record.Replica
}

// complete reports whether a group has exactly so many instances, each running with an open stream
// at its replica, and whether the leader agrees. Instances past the point of no return do not
// count: their records stay until it is proved that no late call of a former leader brings their
// machine back (SAFE-8).
func (h *history) complete(group string, size int) bool {
	n := 0
	for _, v := range h.instances(group) {
		switch {
		case v.Record.Phase == store.Deleting:
		case v.Record.Phase != store.Running || h.alive(v.Record.ID).Record.State != store.StreamOpen:
			return false
		default:
			n++
		}
	}
	st := h.status(group).Record
	return n == size && st.Health == 100 && st.Phases[store.Running] == size && st.Verdicts[store.Live] == size
}

// wanted returns the IDs of the instances of a group that are not being removed.
func (h *history) wanted(group string) []string {
	var out []string
	for _, v := range h.instances(group) {
		if v.Record.Phase != store.Deleting {
			out = append(out, v.Record.ID)
		}
	}
	return out
}

// write writes the whole history to files.
func (h *history) write(journal, changes string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var j, c strings.Builder
	for _, n := range h.journal {
		j.WriteString(n.String() + "\n")
	}
	for _, x := range h.changes {
		what := string(x.KV.Value)
		if x.Deleted {
			what = "DELETED"
		}
		fmt.Fprintf(&c, "%s rev %d %s %s\n", x.heard.UTC().Format("15:04:05.000"), x.KV.Modified, x.KV.Key, what)
	}
	return errors.Join(os.WriteFile(journal, []byte(j.String()), 0o600),
		os.WriteFile(changes, []byte(c.String()), 0o600))
}

// readable returns what in etcd is not JSON with a schema.
func (h *history) readable() (keys int, problems []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, kv := range h.current {
		keys++
		var head struct {
			Schema *int `json:"schema"`
		}
		if err := json.Unmarshal(kv.Value, &head); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %s: %s", key, err, kv.Value))
		} else if head.Schema == nil || *head.Schema < 1 {
			problems = append(problems, fmt.Sprintf("%s has no schema: %s", key, kv.Value))
		}
	}
	return keys, problems
}
