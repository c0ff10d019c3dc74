package coordinator_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// A machine that cannot be stopped in order goes all the same, and its record with it.
//
// proves HEAL-14
// proves SAFE-8
func TestDeleteFollowsAStopThatFails(t *testing.T) {
	for name, fault := range map[string]fake.Fault{
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
					f.Call, f.Instance = fake.CallStop, id
					w.provider.Inject(f)
				}
				g.Size = 1
				w.apply(g)
				// One Stop may take its whole time, and the record goes with the List after.
				most := w.provider.Capabilities().CallTimeout + g.StopTimeout.D() + 10*time.Second
				w.until(most, "the surplus one is gone, and its record",
					func() bool { return w.settled(1) && len(w.provider.Existing()) == 1 })
				stops, deletes := 0, 0
				for _, l := range w.provider.Ledger() {
					stops, deletes = stops+l.Calls[fake.CallStop], deletes+l.Calls[fake.CallDelete]
					if l.Overlapped {
						t.Errorf("calls for %s overlapped", l.Instance)
					}
				}
				if stops != 1 || deletes != 1 || w.made() != 2 {
					t.Errorf("%d stops, %d deletes, %d machines made; want one stop and one delete", stops, deletes,
						w.made())
				}
			})
		})
	}
}

// A provider that has not even tried to stop a machine, because it is asked too much, is not asked
// to delete it.
//
// proves HEAL-14
func TestThrottledStopIsRepeatedBeforeDelete(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.group("web", 2)
		w.apply(g)
		w.up(2)
		const after = time.Minute
		w.provider.Inject(fake.Fault{
			Call: fake.CallStop, Times: 1,
			Err: provider.ThrottledFor(after),
		})
		g.Size = 1
		w.apply(g)
		calls := func(c fake.Call) (n int) {
			for _, l := range w.provider.Ledger() {
				n += l.Calls[c]
			}
			return n
		}
		w.until(10*time.Second, "a stop is refused", func() bool { return calls(fake.CallStop) == 1 })
		w.always(after-time.Second, "it is not asked again, nor to delete", func() bool {
			return calls(fake.CallStop) == 1 && calls(fake.CallDelete) == 0 &&
				len(w.provider.Existing()) == 2
		})
		w.until(15*time.Second, "the surplus one is gone",
			func() bool { return w.settled(1) && len(w.provider.Existing()) == 1 })
		if calls(fake.CallStop) != 2 || calls(fake.CallDelete) != 1 {
			t.Errorf("%d stops, %d deletes; want two and one", calls(fake.CallStop),
				calls(fake.CallDelete))
		}
	})
}

// A pause or a hold keeps every removal from beginning that has not begun, also one that waits in
// the queue of a leader who does not see it. What has begun is brought to its end.
//
// proves REC-13
// proves SAFE-12
func TestAPauseStopsRemovalsThatWait(t *testing.T) {
	for name, halt := range map[string]func(w *world, on bool){
		"pause": func(w *world, on bool) { w.edit("web", func(g *store.Group) { g.Paused = on }) },
		"hold": func(w *world, on bool) {
			w.editShard(func(s *store.Shard) {
				if s.Hold = nil; on {
					s.Hold = &store.Hold{By: "ann", Why: "to look at them", At: time.Now().UTC()}
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, quick, func(w *world) {
				one := w.start("one")
				const begun, waiting = 8, 2 // as many as are carried out at once, and more
				g := w.group("web", begun+waiting)
				w.apply(g)
				w.up(begun + waiting)
				w.provider.Inject(fake.Fault{Call: fake.CallStop, Times: begun, Hang: true})
				w.edit("web", func(g *store.Group) { g.Size = 0 })
				w.until(time.Minute, "all are to be deleted",
					func() bool { return w.phases(store.Deleting) == begun+waiting })
				w.pass(time.Second)
				one.store.Faults().StallWatches()
				halt(w, true)
				w.until(w.provider.Capabilities().CallTimeout+g.StopTimeout.D()+10*time.Second,
					"those that had begun are gone", func() bool { return len(w.provider.Existing()) == waiting })
				w.always(time.Minute, "the others are left",
					func() bool { return len(w.provider.Existing()) == waiting })
				one.store.Faults().ReleaseWatches()
				w.always(6*time.Minute, "the others are left",
					func() bool { return len(w.provider.Existing()) == waiting })
				halt(w, false)
				w.until(2*time.Minute, "all are gone",
					func() bool { return len(w.provider.Existing()) == 0 && len(w.instances()) == 0 })
			})
		})
	}
}

// A machine that nobody recorded is not condemned while the group that its tag names is paused:
// there is no way back from that.
//
// proves REC-8
// proves REC-13
func TestExtraMachinesOfAPausedGroupAreLeft(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.editShard(func(s *store.Shard) { s.Settings.OrphanGrace = store.Duration(time.Minute) })
		g := w.group("web", 0)
		g.Paused = true
		w.apply(g)
		w.setMood("extra", mood{mute: true})
		w.extra("extra", "web")
		w.gone("extra", "web")
		w.start("one")
		w.leads(time.Second, "one")
		w.always(10*time.Minute, "it is left alone",
			func() bool { return len(w.provider.Existing()) == 1 && len(w.instances()) == 0 })
		w.edit("web", func(g *store.Group) { g.Paused = false })
		w.until(time.Minute, "it is removed", func() bool { return len(w.provider.Existing()) == 0 })
	})
}
