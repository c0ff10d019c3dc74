package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// prompt lets something happen right after each transaction, before anyone can look.
type prompt struct {
	store.Store
	then func()
}

func (p prompt) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	rev, err := p.Store.Commit(ctx, txn)
	p.then()
	return rev, err
}

// said puts an entry about web into the journal.
func (w *world) said(what string) {
	now := time.Now()
	e := store.JournalEntry{Schema: 1, At: now, Rule: "REC-3", Group: "web", What: what}
	w.put(store.KindEvents, strings.TrimPrefix(w.keys.Event(now, what), w.keys.Of(store.KindEvents)), e)
}

// What a fast coordinator does before the first listing is shown as well, and nothing is shown
// twice.
func TestWaitShowsTheJournalFromItsOwnWriteOn(t *testing.T) {
	waitWorld(t, func(w *world) {
		<-time.After(59*time.Minute + 59*time.Second) // of the bubble's own clock: the hour ends while we wait
		w.said("before")
		other := *w
		other.st = w.db.Connect()
		st := w.db.Connect()
		w.st = prompt{Store: st, then: func() {
			other.said("accepted")
			<-time.After(2 * time.Second)
		}}
		r := w.start("group scale web 2 --wait")
		<-time.After(3 * time.Second)
		other.said("checking")
		st.Faults().Cut()
		<-time.After(10 * time.Second)
		other.said("meanwhile")
		g := webGroup(2)
		for slot, id := range []string{"web-0-a", "web-1-b"} {
			other.put(store.KindInstances, id, instanceOf(g, slot, id, store.Running))
		}
		other.put(store.KindStatus, "web", statusOf(g, 10, 2))
		st.Faults().Mend()
		r.expect(Done)
		for what, times := range map[string]int{"before": 0, "accepted": 1, "checking": 1, "meanwhile": 1} {
			if n := strings.Count(r.err.String(), what+"\n"); n != times {
				t.Errorf("%q is there %d times, not %d:\n%s", what, n, times, r.err.String())
			}
		}
	})
}

// If nothing was written, nothing followed from it: earlier entries are not shown.
func TestWaitWithoutAChangeReportsNoPast(t *testing.T) {
	waitWorld(t, func(w *world) {
		w.said("long ago")
		g := webGroup(1)
		w.put(store.KindInstances, "web-0-a", instanceOf(g, 0, "web-0-a", store.Running))
		w.put(store.KindStatus, "web", statusOf(g, 8, 1))
		r := w.start("group scale web 1 --wait")
		if r.expect(Done, "done: web 1/1"); strings.Contains(r.err.String(), "long ago") {
			t.Errorf("got %s", r.err.String())
		}
	})
}
