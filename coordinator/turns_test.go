package coordinator_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// The key of a group's turns is there once a change has used its budgets, and goes with the group.
//
// proves HEAL-3, REC-7
func TestTheKeyOfTurnsGoesWithItsGroup(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.group("web", 2)
		w.apply(g)
		ids := w.up(2)
		turn := func() store.Versioned[store.Turn] {
			t.Helper()
			kvs := w.list(w.keys.Turn("web"))
			if len(kvs) != 1 {
				t.Fatalf("%d keys of turns", len(kvs))
			}
			v, err := store.Decode[store.Turn](kvs[0])
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		before := turn()
		w.pass(time.Minute)
		if now := turn(); now.Modified != before.Modified {
			t.Errorf("a turn is taken at rest: %+v", now.Record)
		}
		w.provider.Crash(ids[0], "exit 1")
		w.until(time.Minute, "it is replaced", func() bool { return w.settled(2) && !slices.Contains(w.ids(), ids[0]) })
		if now := turn(); now.Modified == before.Modified || now.Record.Rule == "" {
			t.Errorf("no turn was taken: %+v", now.Record)
		}
		g.Deleting = true
		w.apply(g)
		w.until(2*time.Minute, "the group is gone", func() bool { return len(w.list(w.keys.Group("web"))) == 0 })
		w.pass(time.Minute)
		if kvs := w.list(w.keys.Turn("web")); len(kvs) != 0 {
			t.Errorf("the key of turns outlives the group: %s", kvs[0].Value)
		}
	})
}
