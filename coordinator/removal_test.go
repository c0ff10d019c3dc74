package coordinator_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/memprovider"
)

// A machine that cannot be stopped in order goes all the same, and its record with it.
//
// proves HEAL-14
// proves SAFE-8
func TestDeleteFollowsAStopThatFails(t *testing.T) {
	for name, fault := range map[string]memprovider.Fault{
		"fails": {Err: errors.New("500 internal error")},
		"hangs": {Hang: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, quick, func(w *world) {
				w.start("one")
				g := w.group("web", 2)
				w.apply(g)
				for _, id := range w.up(2) {
					f := fault
					f.Call, f.Instance = memprovider.CallStop, id
					w.provider.Inject(f)
				}
				g.Size = 1
				w.apply(g)
				// One Stop may take its whole time, and the record goes with the List after.
				most := w.provider.Capabilities().CallTimeout + g.StopTimeout.D() + 10*time.Second
				w.until(most, "the surplus one is gone, and its record", func() bool { return w.settled(1) && len(w.provider.Existing()) == 1 })
				stops, deletes := 0, 0
				for _, l := range w.provider.Ledger() {
					stops, deletes = stops+l.Calls[memprovider.CallStop], deletes+l.Calls[memprovider.CallDelete]
					if l.Overlapped {
						t.Errorf("calls for %s overlapped", l.Instance)
					}
				}
				if stops != 1 || deletes != 1 || w.made() != 2 {
					t.Errorf("%d stops, %d deletes, %d machines made; want one stop and one delete", stops, deletes, w.made())
				}
			})
		})
	}
}

// A provider that has not even tried to stop a machine, because it is asked too much, is not asked to delete it.
//
// proves HEAL-14
func TestThrottledStopIsRepeatedBeforeDelete(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.group("web", 2)
		w.apply(g)
		w.up(2)
		const after = time.Minute
		w.provider.Inject(memprovider.Fault{Call: memprovider.CallStop, Times: 1, Err: &provider.ThrottledError{After: after}})
		g.Size = 1
		w.apply(g)
		calls := func(c memprovider.Call) (n int) {
			for _, l := range w.provider.Ledger() {
				n += l.Calls[c]
			}
			return n
		}
		w.until(10*time.Second, "a stop is refused", func() bool { return calls(memprovider.CallStop) == 1 })
		w.always(after-time.Second, "it is not asked again, nor to delete", func() bool {
			return calls(memprovider.CallStop) == 1 && calls(memprovider.CallDelete) == 0 && len(w.provider.Existing()) == 2
		})
		w.until(15*time.Second, "the surplus one is gone", func() bool { return w.settled(1) && len(w.provider.Existing()) == 1 })
		if calls(memprovider.CallStop) != 2 || calls(memprovider.CallDelete) != 1 {
			t.Errorf("%d stops, %d deletes; want two and one", calls(memprovider.CallStop), calls(memprovider.CallDelete))
		}
	})
}
