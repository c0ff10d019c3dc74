package cache_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// counted puts a status as leaders of this release write it.
func (w *world) counted(group string) {
	w.t.Helper()
	n := 1
	w.put(keys.Status(group), string(store.Encode(store.Status{Schema: store.Schema, Group: group, Records: &n})))
}

// recorded puts an instance of the group web.
func (w *world) recorded(id string) store.Revision {
	w.t.Helper()
	return w.commit(store.Put(keys.Instance(id),
		store.Encode(store.Instance{Schema: store.Schema, ID: id, Group: "web", Slot: 2, Managed: true})))
}

func note(revision store.Revision) []byte {
	return store.Encode(store.Gone{Schema: store.Schema, Revision: revision, Group: "web", Instance: "a"})
}

func (w *world) missing() (keys []string) {
	w.View(func(c *cache.Content) {
		for key := range c.Missing {
			keys = append(keys, key)
		}
	})
	slices.Sort(keys)
	return keys
}

// A record is missing if it went without a note; the watch and a fresh listing agree on that.
//
// proves SAFE-15
func TestMissingRecords(t *testing.T) {
	key := keys.Instance("a")
	for _, c := range []struct {
		name string
		do   func(w *world, was store.Revision)
		want bool
	}{
		{"deleted", func(w *world, _ store.Revision) { w.commit(store.Delete(key)) }, true},
		{"deleted with a note", func(w *world, was store.Revision) {
			w.commitAll(store.Put(keys.Gone(key), note(was)), store.Delete(key))
		}, false},
		{"deleted, and noted afterwards", func(w *world, was store.Revision) {
			w.commit(store.Delete(key))
			w.commit(store.Put(keys.Gone(key), note(was)))
		}, false},
		{"deleted beside the note of an earlier record", func(w *world, was store.Revision) {
			w.commit(store.Put(keys.Gone(key), note(was-1)))
			w.commit(store.Delete(key))
		}, true},
		{"deleted and put back", func(w *world, _ store.Revision) {
			w.commit(store.Delete(key))
			w.recorded("a")
		}, false},
		{"deleted by a leader of the release before", func(w *world, _ store.Revision) {
			w.put(keys.Status("web"), `{"schema": 1}`)
			w.commit(store.Delete(key))
		}, false},
		{"deleted by a leader of the release before, which writes its status then", func(w *world, _ store.Revision) {
			w.commit(store.Delete(key))
			w.put(keys.Status("web"), `{"schema": 1}`)
		}, false},
		{"deleted after its status", func(w *world, _ store.Revision) {
			w.commit(store.Delete(keys.Status("web")))
			w.commit(store.Delete(key))
		}, true},
		{"spoiled", func(w *world, _ store.Revision) { w.put(key, "garbage") }, false},
	} {
		for _, unseen := range []bool{false, true} {
			t.Run(c.name+map[bool]string{true: ", and the watch was interrupted", false: ""}[unseen],
				func(t *testing.T) {
					inWorld(t, func(w *world) {
						w.counted("web")
						was := w.recorded("a")
						if unseen {
							w.followed.Faults().StallWatches()
						}
						c.do(w, was)
						if unseen {
							<-time.After(5 * time.Second) // silence: everything is listed again
							w.followed.Faults().ReleaseWatches()
							<-time.After(time.Second)
						}
						if got := slices.Contains(w.missing(), key); got != c.want {
							t.Errorf("missing: %v", w.missing())
						}
					})
				})
		}
	}
}

// A replica that was cut off until gone notes had ended takes nothing for missing by what it
// remembers.
//
// proves SAFE-15
func TestOldMemoryProvesNoLoss(t *testing.T) {
	inWorld(t, func(w *world) {
		settings := store.DefaultShardSettings()
		settings.EventsKept = store.Duration(time.Hour)
		w.put(keys.Shard(), string(store.Encode(store.Shard{Schema: store.Schema, ID: "s", Settings: settings})))
		w.counted("web")
		was := w.recorded("a")
		<-time.After(time.Second)
		w.followed.Faults().Cut()
		w.commitAll(store.Put(keys.Gone(keys.Instance("a")), note(was)), store.Delete(keys.Instance("a")))
		<-time.After(2 * time.Hour)
		w.commit(store.Delete(keys.Gone(keys.Instance("a"))))
		w.followed.Faults().Mend()
		<-time.After(time.Minute)
		if got := w.missing(); len(got) != 0 {
			t.Errorf("missing: %v", got)
		}
	})
}

// What is missing, and what it said, outlives fresh listings.
//
// proves SAFE-15
func TestMissingRecordsAreRemembered(t *testing.T) {
	inWorld(t, func(w *world) {
		w.counted("web")
		was := w.recorded("a")
		w.commit(store.Delete(keys.Instance("a")))
		for range 2 {
			w.followed.Faults().StallWatches()
			<-time.After(5 * time.Second)
			w.followed.Faults().ReleaseWatches()
			<-time.After(time.Second)
		}
		w.View(func(c *cache.Content) {
			m := c.Missing[keys.Instance("a")]
			if m.Instance == nil || m.Instance.Slot != 2 || m.Last != was || m.At <= was {
				said, _ := json.Marshal(m)
				t.Errorf("remembered: %s", said)
			}
		})
	})
}

func (w *world) commitAll(writes ...store.Write) {
	w.t.Helper()
	if _, err := w.store.Commit(w.t.Context(), store.Txn{Writes: writes}); err != nil {
		w.t.Fatal(err)
	}
	<-time.After(time.Millisecond)
}
