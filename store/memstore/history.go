package memstore

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// history is every key at every revision since the last compaction. It knows no leases, clients or
// time, and is not safe for concurrent use.
type history struct {
	revision  store.Revision // the newest
	compacted store.Revision // the oldest that can be listed
	keys      []string       // of versions, sorted
	versions  map[string][]version
	first     store.Revision  // the revision of log[0]
	log       [][]store.Event // what each revision changed
}

// version is a key from one revision on.
type version struct {
	kv      store.KV
	deleted bool
}

// newHistory begins at revision 1, as etcd does.
func newHistory() history {
	return history{revision: 1, first: 2, versions: map[string][]version{}}
}

// get returns the key now, or false.
func (h *history) get(key string) (store.KV, bool) {
	vs := h.versions[key]
	if len(vs) == 0 || vs[len(vs)-1].deleted {
		return store.KV{}, false
	}
	return vs[len(vs)-1].kv, true
}

// list returns what a prefix held at a revision: the first keys that do not sort before from, no
// more than most.
func (h *history) list(prefix, from string, most int, at store.Revision) (store.Part, error) {
	switch {
	case at == 0:
		at = h.revision
	case at > h.revision:
		return store.Part{}, fmt.Errorf("revision %d is in the future, the newest is %d", at, h.revision)
	case at < h.compacted:
		return store.Part{}, fmt.Errorf("revision %d: %w up to %d", at, store.ErrCompacted, h.compacted)
	}
	part := store.Part{Listing: store.Listing{Revision: at}}
	first, _ := slices.BinarySearch(h.keys, max(prefix, from))
	for _, key := range h.keys[first:] {
		if !strings.HasPrefix(key, prefix) {
			break
		}
		kv, there := h.at(key, at)
		switch {
		case !there:
		case len(part.KVs) < most:
			part.KVs = append(part.KVs, copied(kv))
		default:
			if part.Behind++; part.Behind == 1 {
				part.Next = key
			}
		}
	}
	return part, nil
}

// at returns a key at a revision, or false.
func (h *history) at(key string, at store.Revision) (store.KV, bool) {
	for _, v := range slices.Backward(h.versions[key]) {
		if v.kv.Modified <= at {
			return v.kv, !v.deleted
		}
	}
	return store.KV{}, false
}

// apply makes the writes the next revision, if they change anything, and returns what they changed.
func (h *history) apply(writes []store.Write) []store.Event {
	next := h.revision + 1
	var events []store.Event
	for _, w := range writes {
		was, there := h.get(w.Key)
		if w.Delete {
			if there {
				events = append(events, h.add(version{kv: store.KV{Key: w.Key, Modified: next}, deleted: true}))
			}
			continue
		}
		kv := store.KV{Key: w.Key, Value: bytes.Clone(w.Value), Created: next, Modified: next, Lease: w.Lease}
		if there {
			kv.Created = was.Created
		}
		events = append(events, h.add(version{kv: kv}))
	}
	if len(events) > 0 {
		h.revision = next
		h.log = append(h.log, events)
	}
	return events
}

func (h *history) add(v version) store.Event {
	vs, known := h.versions[v.kv.Key]
	if !known {
		i, _ := slices.BinarySearch(h.keys, v.kv.Key)
		h.keys = slices.Insert(h.keys, i, v.kv.Key)
	}
	h.versions[v.kv.Key] = append(vs, v)
	return store.Event{KV: v.kv, Deleted: v.deleted}
}

// changes are those below prefix from a revision on, of so many whole revisions that they are not
// many more than most, and the last revision looked at.
func (h *history) changes(prefix string, from store.Revision, most int) ([]store.Event, store.Revision) {
	var events []store.Event
	upTo := h.revision
	for rev := max(from, h.first); rev <= h.revision; rev++ {
		for _, e := range h.log[rev-h.first] {
			if strings.HasPrefix(e.KV.Key, prefix) {
				e.KV = copied(e.KV)
				events = append(events, e)
			}
		}
		if len(events) >= most {
			upTo = rev
			break
		}
	}
	return events, upTo
}

// compact forgets what is older than rev.
func (h *history) compact(rev store.Revision) error {
	if rev > h.revision {
		return fmt.Errorf("compact revision %d: it is in the future, the newest is %d", rev, h.revision)
	}
	if rev <= h.compacted {
		return fmt.Errorf("compact revision %d: %w up to %d", rev, store.ErrCompacted, h.compacted)
	}
	h.compacted = rev
	kept := h.keys[:0]
	for _, key := range h.keys {
		vs := h.versions[key]
		first := 0 // the version in force at rev
		for first+1 < len(vs) && vs[first+1].kv.Modified <= rev {
			first++
		}
		if vs[first].deleted && vs[first].kv.Modified <= rev {
			first++
		}
		if first == len(vs) {
			delete(h.versions, key)
			continue
		}
		h.versions[key] = slices.Clone(vs[first:])
		kept = append(kept, key)
	}
	clear(h.keys[len(kept):])
	h.keys = kept
	if rev > h.first {
		h.log = slices.Clone(h.log[rev-h.first:])
		h.first = rev
	}
	return nil
}

// copied returns a KV whose value the receiver may modify.
func copied(kv store.KV) store.KV {
	kv.Value = bytes.Clone(kv.Value)
	return kv
}
