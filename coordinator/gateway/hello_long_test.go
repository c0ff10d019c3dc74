//go:build !race

// The race detector would make these many times slower, and sees the same code in other tests.

package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// proves REC-8, DET-18, SAFE-14
func TestAgentWithoutARecordIsRefusedAndNotedAsAStray(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		m := r.refused(hello("web-9", "boot1", 1), protocol.Refused_UNKNOWN)
		if after, most := m.GetAfter().AsDuration(),
			store.DefaultShardSettings().ReconnectMax.D(); after < most/2 || after > most {
			t.Errorf("it is to come again after %s, want %s at the most", after, most)
		}
		stray := read[store.Stray](w, w.keys.Stray("web-9"))
		if stray.Record.Instance != "web-9" || stray.Record.Replica != "one" || stray.Lease == 0 {
			w.t.Fatalf("stray %+v on lease %s", stray.Record, stray.Lease)
		}
		pass(12 * time.Hour)
		r.refused(hello("web-9", "boot1", 2), protocol.Refused_UNKNOWN)
		pass(time.Second)
		if again := read[store.Stray](w, w.keys.Stray("web-9")); again.Modified != stray.Modified ||
			again.Lease != stray.Lease {
			t.Errorf("stray %+v on lease %s: the second hello wrote it again", again.Record, again.Lease)
		}
		for range 20 { // this lasts longer than a lease, whatever happens to the key
			pass(12 * time.Hour)
			r.refused(hello("web-9", "boot1", 3), protocol.Refused_UNKNOWN)
		}
		w.remove(w.keys.Stray("web-9"))
		pass(time.Second)
		r.refused(hello("web-9", "boot1", 4), protocol.Refused_UNKNOWN)
		if !read[store.Stray](w, w.keys.Stray("web-9")).Present() {
			t.Error("the stray is not noted any more")
		}
		w.record("web-9", store.Running)
		pass(time.Second)
		defer r.welcomed(hello("web-9", "boot1", 5)).hangUp()
		pass(time.Second)
		if read[store.Stray](w, w.keys.Stray("web-9")).Present() {
			t.Error("it has a record, and is noted as a stray")
		}
	})
}

// proves SEC-5, DET-18
func TestSecondBootsFillNoJournal(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		const most, each = 1000, 9 // and a welcomed one: no instance sends more hellos at once
		for i := range most/each + 2 {
			id := fmt.Sprintf("web-%d", i)
			w.record(id, store.Running)
			defer r.welcomed(hello(id, "boot", 1)).hangUp()
			for boot := range each {
				r.refused(hello(id, fmt.Sprintf("boot-%d", boot), 1), protocol.Refused_BOOT_CONFLICT)
			}
		}
		if n := len(r.entries()); n != most {
			t.Errorf("%d entries in the journal, want %d at most", n, most)
		}
	})
}
