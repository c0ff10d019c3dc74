package coordinator_test

import (
	"testing"
	"time"
)

// The journal is read in the order of its keys. That is the order in which things happened, also where the clock stands still in between, as
// it does here.
//
// proves REC-15
func TestJournalIsReadInItsOrder(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.leads(time.Second, "one")
		w.apply(w.group("web", 5))
		w.until(time.Minute, "all run", func() bool { return w.settled(5) })
		entries := w.journal()
		for i := 1; i < len(entries); i++ {
			if before, e := entries[i-1], entries[i]; before.Modified > e.Modified {
				t.Errorf("%q of revision %d is read before %q of revision %d", before.Record.What, before.Modified, e.Record.What, e.Modified)
			}
		}
		if len(entries) < 20 {
			t.Errorf("only %d entries", len(entries))
		}
	})
}
