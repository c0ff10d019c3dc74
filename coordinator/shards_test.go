package coordinator_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/store"
)

// neighbour is a shard beside the test's own. Its name begins with the name of the other.
const neighbour = "test2"

// beside does something in the neighbouring shard.
func (w *world) beside(do func()) {
	w.t.Helper()
	own := w.keys
	w.keys = store.KeysOf(neighbour)
	defer func() { w.keys = own }()
	do()
}

// Two shards in one etcd, with one provider and with groups of the same name: what happens in one
// leaves no trace in the other.
//
// proves ELECT-4
func TestShardsShareNothing(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		one := w.start("one")
		w.beside(func() { w.editShard(func(s *store.Shard) { s.ID = "shard2" }) })
		w.start("two", func(cfg *coordinator.Config, _ *coordinator.Deps) { cfg.Shard = neighbour })
		w.leads(time.Second, "one")
		w.beside(func() { w.leads(time.Second, "two") }) // neither waits for the other
		g := w.group("web", 3)
		w.apply(g)
		ids := w.up(3)
		if len(w.provider.Existing()) != 3 {
			t.Errorf("%d machines for a group of 3 that only one shard has", len(w.provider.Existing()))
		}
		var theirs []string
		w.beside(func() {
			w.apply(w.group("web", 2))
			theirs = w.up(2)
		})
		w.pass(time.Minute)
		before := w.untouched(neighbour)

		// In this shard all kinds of things happen. The neighbour's own life leaves its records as
		// they are.
		history := w.store.Watch(w.t.Context(), store.KeysOf(neighbour).Prefix(), w.revision()+1)
		w.provider.Crash(ids[0], "exit 1")
		w.silence(ids[1])
		w.until(3*time.Minute, "both are replaced", func() bool {
			return w.settled(3) && !slices.Contains(w.ids(), ids[0]) && !slices.Contains(w.ids(), ids[1])
		})
		w.order("r1", store.RequestDelete, ids[2])
		w.order("r2", store.RequestDelete, theirs[0]) // which is unknown here
		w.until(time.Minute, "the third is replaced",
			func() bool { return w.settled(3) && !slices.Contains(w.ids(), ids[2]) })
		w.editShard(func(s *store.Shard) { s.Hold = &store.Hold{By: "ann", At: time.Now().UTC()} })
		w.pass(time.Minute)
		w.editShard(func(s *store.Shard) { s.Hold = nil })
		g.Size = 1
		w.apply(g)
		w.until(time.Minute, "one is left", func() bool { return w.settled(1) })
		w.pass(15 * time.Minute) // a leader that took the neighbour's machines for orphans would have removed them
		g.Deleting = true
		w.apply(g)
		w.until(time.Minute, "the group is gone",
			func() bool { return len(w.instances()) == 0 && len(w.list(w.keys.Group("web"))) == 0 })
		one.stop()
		w.pass(15 * time.Minute)

		w.beside(func() {
			if now := w.ids(); !slices.Equal(now, theirs) || !w.settled(2) {
				t.Errorf("the neighbour's instances are %v, want %v as before\n%s", now, theirs, w.describe())
			}
			if by := w.leader(); by != "two" {
				t.Errorf("%q leads the neighbour", by)
			}
			for _, e := range w.journal() {
				if e.Record.By != "two" {
					t.Errorf("%s wrote into the neighbour's journal: %+v", e.Record.By, e.Record)
				}
			}
		})
		if !slices.Equal(w.provider.Existing(), theirs) {
			t.Errorf("machines %v exist, want the neighbour's %v", w.provider.Existing(), theirs)
		}
		if now := w.untouched(neighbour); !maps.Equal(now, before) {
			t.Errorf("the neighbour's records were %v and are %v", before, now)
		}
		for _, e := range w.journal() {
			if e.Record.By != "one" || slices.Contains(theirs, e.Record.Instance) && e.Record.Rule != "REC-16" {
				t.Errorf("the journal of this shard tells of the neighbour's: %+v", e.Record)
			}
		}
		last := w.put(store.KeysOf(neighbour).Request("end"), []byte(`{"schema": 1}`))
		for b := range history {
			for _, e := range b.Events {
				if e.KV.Modified > last {
					continue // the neighbour's own answer to what was put last
				}
				switch kind, _, _ := store.KeysOf(neighbour).Split(e.KV.Key); kind {
				case store.KindServed, store.KindReports, store.KindRequests:
				default:
					t.Errorf("revision %d touches %s", e.KV.Modified, e.KV.Key)
				}
			}
			if b.Revision >= last {
				break
			}
		}
	})
}

// untouched is a shard's records with their revisions, but for those that a leader and agents write
// in the course of time.
func (w *world) untouched(shard string) map[string]store.Revision {
	w.t.Helper()
	keys, found := store.KeysOf(shard), map[string]store.Revision{}
	for _, kv := range w.list(keys.Prefix()) {
		if kind, _, _ := keys.Split(kv.Key); kind != store.KindServed && kind != store.KindReports {
			found[kv.Key] = kv.Modified
		}
	}
	return found
}
