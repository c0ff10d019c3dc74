package gateway_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// What a replica writes of a stream compares what it has read: between the two the agent may have
// gone elsewhere.
//
// proves DET-18
func TestAgentGoesElsewhereBetweenReadingAndWriting(t *testing.T) {
	for name, late := range map[string]func(*world, *agent){
		"overdue":  func(*world, *agent) { pass(2 * interval) },
		"lost":     func(_ *world, a *agent) { a.hangUp() },
		"left":     func(_ *world, a *agent) { a.goodbye(protocol.Goodbye_SHUTDOWN) },
		"put back": func(w *world, _ *agent) { w.db.Faults().DropLease(w.alive("web-0").Lease) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				one, two := w.serve("one"), w.serve("two")
				defer one.stop()
				defer two.stop()
				w.record("web-0", store.Running)
				a := one.welcomed(hello("web-0", "boot1", 1))
				defer a.hangUp()
				var b *agent
				var written store.Revision
				one.beforeWriting("web-0", func() {
					b = two.welcomed(hello("web-0", "boot1", 2))
					written = w.alive("web-0").Modified
				})
				late(w, a)
				pass(0)
				if b == nil {
					w.t.Fatal("nothing was written")
				}
				defer b.hangUp()
				w.shows("web-0", "two", 2, store.StreamOpen)
				if now := w.alive("web-0").Modified; now != written {
					t.Errorf("alive was written at %d, after the new session did at %d", now, written)
				}
			})
		})
	}
}

// An agent's hello, or its return, races with the decision to delete its machine: exactly one of
// them happens.
//
// proves DET-18
// proves SAFE-4
func TestRecordIsDeletedBetweenReadingAndWriting(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		w.record("web-1", store.Running)
		r.beforeWriting("web-0", func() { w.record("web-0", store.Deleting) })
		r.refused(hello("web-0", "boot1", 1), protocol.Refused_RETIRED)
		if w.alive("web-0").Present() {
			t.Error("hello: it got a lease")
		}
		a := r.welcomed(hello("web-1", "boot1", 1))
		defer a.hangUp()
		r.beforeWriting("web-1", func() { w.gone("web-1") })
		w.db.Faults().DropLease(w.alive("web-1").Lease)
		pass(time.Second)
		if w.alive("web-1").Present() {
			t.Error("return: it got another lease")
		}
		if m := a.next(); m.GetRefused().GetReason() != protocol.Refused_RETIRED {
			t.Errorf("the agent is told %v", m)
		}
	})
}

// An exchange that loses several races in a row fails with an error; the agent tries elsewhere.
//
// proves DET-18
func TestHelloThatLosesEveryRaceIsSentElsewhere(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		r.pause.mu.Lock()
		r.pause.first = func(store.Txn) bool {
			w.record("web-0", store.Running) // another revision of it
			return false
		}
		r.pause.mu.Unlock()
		r.refused(hello("web-0", "boot1", 1), protocol.Refused_UNAVAILABLE)
		if w.alive("web-0").Present() {
			t.Error("it got a lease")
		}
	})
}
