package coordinator_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A spec that an earlier release accepted, and this one would refuse, stays in force: its instances
// are kept, and healed.
//
// proves SAFE-10
func TestSpecThatIsRefusedByNowStaysInForce(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		first := w.start("one")
		w.apply(w.group("web", 2))
		w.up(2)
		w.until(time.Minute, "the group is up", func() bool { return w.settled(2) })
		first.kill()
		status, err := store.Decode[store.Status](w.list(w.keys.Status("web"))[0])
		if err != nil {
			t.Fatal(err)
		}
		g := *status.Record.Accepted
		g.Flap.MinDelay, g.Flap.MaxDelay = store.Duration(2*time.Minute), store.Duration(time.Minute)
		if g.Validate() == nil {
			t.Fatal("the spec is valid")
		}
		w.put(w.keys.Group("web"), store.Encode(g))
		status.Record.Accepted, status.Record.AcceptedRevision = &g, w.list(w.keys.Group("web"))[0].Modified
		w.put(w.keys.Status("web"), store.Encode(status.Record))
		before := w.ids() // no machine is made or removed for it
		w.start("one")
		w.until(time.Minute, "the status says what is wrong", func() bool {
			st, err := store.Decode[store.Status](w.list(w.keys.Status("web"))[0])
			return err == nil && st.Record.Invalid != nil && st.Record.Accepted != nil &&
				st.Record.AcceptedRevision == status.Record.AcceptedRevision
		})
		w.always(5*time.Minute, "the instances are kept", func() bool {
			for _, id := range before {
				if !slices.Contains(w.ids(), id) {
					return false
				}
			}
			return true
		})
		w.provider.Crash(before[0], "exit 1")
		w.until(2*time.Minute, "a dead one is replaced",
			func() bool { return !slices.Contains(w.ids(), before[0]) && len(w.ids()) == 2 })
	})
}
