package coordinator_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A record of one group alone that cannot be read stops that group, and no other; it is not written
// over.
//
// proves SAFE-3
// proves SAFE-10
func TestUnreadableStatusStopsItsGroupAlone(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.group("api", 1))
		w.up(1)
		w.apply(w.group("web", 1))
		w.until(time.Minute, "both groups are up", func() bool { return w.settled(2) })
		key := w.keys.Status("api")
		newer := []byte(`{"schema": 2}`)
		was := w.list(key)[0].Value
		w.put(key, newer)
		w.pass(time.Second)
		ids := w.ids()
		for _, id := range ids {
			w.provider.Crash(id, "exit 1")
		}
		w.until(time.Minute, "web heals", func() bool {
			return slices.ContainsFunc(w.ids(),
				func(id string) bool { return strings.HasPrefix(id, "web-") && !slices.Contains(ids, id) })
		})
		w.always(10*time.Minute, "api is left alone", func() bool {
			return string(w.list(key)[0].Value) == string(newer) &&
				slices.ContainsFunc(w.ids(), func(id string) bool { return slices.Contains(ids, id) })
		})
		w.put(key, was)
		w.until(time.Minute, "api heals", func() bool {
			v, err := store.Decode[store.Status](w.list(key)[0])
			return err == nil && v.Record.OK &&
				!slices.ContainsFunc(w.ids(), func(id string) bool { return slices.Contains(ids, id) })
		})
	})
}

// With an unreadable shard record no replica leads; candidates do not race for it.
//
// proves SAFE-16
func TestUnreadableShardCausesNoElections(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		one := w.start("one")
		w.leads(time.Second, "one")
		w.start("two")
		w.apply(w.group("web", 2))
		w.up(2)
		before := w.list(w.keys.Shard())[0].Value
		w.put(w.keys.Shard(), []byte("garbage"))
		w.pass(time.Second)
		from := w.put(w.keys.Group("zz"), store.Encode(w.group("zz", 0)))
		one.stop()
		w.pass(20 * time.Second)
		to := w.put(w.keys.Group("zz"), store.Encode(w.group("zz", 0)))
		if n := int(to - from); n > 400 {
			t.Errorf("%d transactions within 20s", n)
		}
		w.put(w.keys.Shard(), before)
		w.leads(30*time.Second, "two")
	})
}
