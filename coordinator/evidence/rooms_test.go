package evidence_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// A snapshot reuses what the one before it showed. Whatever has changed in between is shown as it
// is now: as when nothing was left to reuse.
func TestASnapshotShowsWhatHasChangedSinceTheLast(t *testing.T) {
	const id = "g0000-0003"
	change := func(w *world, edit func(*store.Instance)) {
		rec := w.content.Instances[id].Record
		edit(&rec)
		w.put(keys.Instance(id), rec)
	}
	list := func(w *world, state provider.State) {
		w.evidence.ListedBy("mem", w.now, []provider.Machine{{Instance: id, State: state}}, w.content)
	}
	rec := func(w *world) store.Instance { return w.content.Instances[id].Record }
	for name, happens := range map[string]func(w *world){
		"a phase": func(w *world) { change(w, func(r *store.Instance) { r.Phase = store.Draining }) },
		"a drain": func(w *world) {
			change(w, func(r *store.Instance) {
				r.Drain = &store.Drain{Timer: store.Timer{Start: w.now, For: store.Duration(time.Minute)}}
			})
		},
		"another report":              func(w *world) { w.report(id, "boot", false) },
		"a report that says the same": func(w *world) { w.report(id, "boot", true) },
		"a lease that ended":          func(w *world) { w.remove(keys.Alive(id)) },
		"a lost stream": func(w *world) {
			w.put(keys.Alive(id), store.Alive{
				Schema: store.Schema, Instance: id, BootID: "boot",
				State: store.StreamLost,
			})
		},
		"a removal": func(w *world) { w.remove(keys.Instance(id)) },
		"a removal and return": func(w *world) {
			r := rec(w)
			w.remove(keys.Instance(id))
			w.put(keys.Instance(id), r)
		},
		"one more": func(w *world) { w.run("g0000", "g0000-0002a") },
		"a call":   func(w *world) { w.evidence.MarkBusy(id) },
		"a call that failed": func(w *world) {
			w.evidence.MarkBusy(id)
			w.evidence.Created(rec(w), w.now, provider.Machine{}, provider.ErrCapacity)
		},
		"a restart": func(w *world) { w.evidence.Restarted(id, "token", nil) },
		"a list":    func(w *world) { list(w, provider.StateStopped) },
		"a second list": func(w *world) {
			list(w, provider.StateStopped)
			w.pass(time.Minute)
			list(w, provider.StateStopped)
		},
		"a slot": func(w *world) {
			w.put(keys.Slot("g0000", 3), store.Slot{Schema: store.Schema, Errored: "flaps"})
		},
		"a slot that waits": func(w *world) {
			w.put(keys.Slot("g0000", 3), store.Slot{
				Schema: store.Schema,
				Retry:  &store.Timer{Start: w.now, For: store.Duration(time.Minute)},
			})
		},
		"a slot that is gone": func(w *world) { w.remove(keys.Slot("g0000", 3)) },
		"a fresh listing":     func(w *world) { w.evidence.Listed(w.content) },
		"another database": func(w *world) {
			kvs := []store.KV{}
			for _, one := range []string{id, "g0000-0004"} {
				r := w.content.Instances[one]
				r.Record.Zone = "other"
				kvs = append(kvs, store.KV{
					Key: r.Key, Value: store.Encode(r.Record), Created: r.Created,
					Modified: r.Modified,
				})
			}
			kvs = append(kvs, store.KV{
				Key:      keys.Slot("g0000", 0),
				Value:    store.Encode(store.Slot{Schema: store.Schema, Errored: "other"}),
				Modified: w.content.Slots["g0000"][0].Modified,
			})
			w.content = cache.FromListing(keys, store.Listing{Revision: w.content.Revision, KVs: kvs})
			w.evidence.Listed(w.content)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.shard(2, 6)
			w.lead()
			before := fmt.Sprintf("%+v", w.group("g0000"))
			w.pass(time.Second)
			happens(w)
			got := fmt.Sprintf("%+v", w.group("g0000"))
			for n := range 4095 {
				w.put(keys.Slot("g0001", n), store.Slot{Schema: store.Schema})
			}
			w.group("g0001") // needs so much room that none is kept for the others
			if want := fmt.Sprintf("%+v", w.group("g0000")); got != want {
				t.Errorf("shows\n%s\nwant\n%s", got, want)
			}
			if name == "another database" && !strings.Contains(got, "Errored:other") {
				t.Errorf("shows a slot as it was in the database before:\n%s", got)
			}
			if got == before && name != "a fresh listing" {
				t.Error("nothing has changed")
			}
		})
	}
}
