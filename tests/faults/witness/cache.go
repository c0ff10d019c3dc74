package witness

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/leasehold/leasehold/store"
)

// Cache is what there is below the prefix, as of one revision of one line.
type Cache struct {
	Line     int
	Revision store.Revision // everything up to it is in the log
	KVs      []store.KV     // ordered by key
}

// Of picks the keys that begin so.
func (p Cache) Of(prefix string) []store.KV {
	var out []store.KV
	for _, kv := range p.KVs {
		if len(kv.Key) >= len(prefix) && kv.Key[:len(prefix)] == prefix {
			out = append(out, kv)
		}
	}
	return out
}

// keys are those that are there.
type keys map[string]store.KV

func (k keys) sorted() []store.KV {
	return slices.SortedFunc(maps.Values(k), func(a, b store.KV) int { return cmp.Compare(a.Key, b.Key) })
}

// same reports whether these are the keys of one state.
func (k keys) same(other keys) bool { return maps.EqualFunc(k, other, sameKV) }

func sameKV(a, b store.KV) bool {
	return a.Created == b.Created && a.Modified == b.Modified && a.Lease == b.Lease && bytes.Equal(a.Value, b.Value)
}

// leadsTo reports whether a later state can have come from this one, which was whole up to a
// revision: what was not written since must be there as it was.
func (k keys) leadsTo(later keys, revision store.Revision) bool {
	for key, kv := range later {
		if kv.Modified <= revision && !sameKV(kv, k[key]) {
			return false
		}
	}
	return true
}
