package coordinator_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A record of one group alone that cannot be read stops that group, and no other; it is not written over.
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
			return slices.ContainsFunc(w.ids(), func(id string) bool { return strings.HasPrefix(id, "web-") && !slices.Contains(ids, id) })
		})
		w.always(10*time.Minute, "api is left alone", func() bool {
			return string(w.list(key)[0].Value) == string(newer) && slices.ContainsFunc(w.ids(), func(id string) bool { return slices.Contains(ids, id) })
		})
		w.put(key, was)
		w.until(time.Minute, "api heals", func() bool {
			v, err := store.Decode[store.Status](w.list(key)[0])
			return err == nil && v.Record.OK && !slices.ContainsFunc(w.ids(), func(id string) bool { return slices.Contains(ids, id) })
		})
	})
}
