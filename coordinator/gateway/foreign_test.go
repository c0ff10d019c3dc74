package gateway_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// speaking returns a hello of an agent that speaks these versions of the protocol.
func speaking(instance string, epoch uint64, newest, oldest uint32) *protocol.Hello {
	h := hello(instance, "boot1", epoch)
	h.Protocol, h.NewestProtocol = cmp.Or(oldest, newest), newest
	return h
}

const reconnectMax = 30 * time.Second // of the shard

// proves DET-18
func TestNewerAgentThatSpeaksOurProtocolTooIsWelcomed(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.call(speaking("web-0", 1, protocol.Newest+1, protocol.Newest))
		defer a.hangUp()
		if m := a.next().GetWelcome(); m.GetProtocol() != protocol.Newest {
			t.Errorf("welcome %v", m)
		}
		if got := w.alive("web-0").Record.Protocol; got != protocol.Newest {
			t.Errorf("alive says protocol %d", got)
		}
	})
}

// An agent whose protocol this replica does not speak is alive: as long as it keeps connecting, it
// is not judged lost.
//
// proves DET-8, DET-18
func TestAgentOfAnUnknownProtocolIsRefusedAndLeftAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		r.welcomed(hello("web-0", "boot1", 1)).hangUp()
		pass(time.Second)
		w.shows("web-0", "one", 1, store.StreamLost)

		var lease store.LeaseID
		for i := range 10 {
			text := r.refused(speaking("web-0", uint64(i+2), 9, 8), protocol.Refused_PROTOCOL).GetMessage()
			if !strings.Contains(text, "the agent speaks versions 8 to 9") ||
				!strings.Contains(text, "upgrade the coordinators first") {
				t.Fatalf("told %q", text)
			}
			w.shows("web-0", "one", uint64(i+2), store.StreamLeft)
			a := w.alive("web-0")
			if a.Record.Goodbye != store.GoodbyeRefused || a.Record.Protocol != 9 ||
				!strings.Contains(a.Record.Why, "versions 8 to 9") {
				t.Fatalf("alive %+v", a.Record)
			}
			if i > 0 && a.Lease != lease {
				t.Fatalf("hello %d has another lease: they would pile up", i)
			}
			lease = a.Lease
			pass(reconnectMax)
			if !w.alive("web-0").Present() {
				t.Fatal("its lease has ended between two hellos")
			}
		}
		told := 0 // at once, and then a sum for each minute
		for _, e := range r.entries() {
			if e.Rule == "DET-18" && strings.Contains(e.Why, "newer than any that is spoken here") {
				told++
			}
		}
		if told == 0 || told > 6 {
			t.Errorf("the journal tells of it %d times in %s: %+v", told, 10*reconnectMax, r.entries())
		}

		// It is upgraded, or goes back.
		a := r.welcomed(hello("web-0", "boot1", 20))
		w.shows("web-0", "one", 20, store.StreamOpen)
		if l := w.alive("web-0").Lease; l == lease {
			t.Error("it is served on the long lease of a refused one")
		}
		a.hangUp()

		// If it stops connecting, it is missed.
		r.refused(speaking("web-0", 21, 9, 8), protocol.Refused_PROTOCOL)
		pass(leaseTTL + 2*reconnectMax + 2*time.Second)
		if w.alive("web-0").Present() {
			t.Error("its lease does not end")
		}
	})
}

// proves DET-11
func TestNewMachineOfAnUnknownProtocolNeverRegisters(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Booting)
		r.refused(speaking("web-0", 1, 9, 0), protocol.Refused_PROTOCOL)
		if w.alive("web-0").Present() {
			t.Error("it got a lease")
		}
	})
}

func TestAgentThatAnotherReplicaServesKeepsItsStreamThere(t *testing.T) {
	inWorld(t, func(w *world) {
		one, two := w.serve("one"), w.serve("two")
		defer one.stop()
		defer two.stop()
		w.record("web-0", store.Running)
		a := one.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		two.refused(speaking("web-0", 2, 9, 0), protocol.Refused_PROTOCOL)
		w.shows("web-0", "one", 1, store.StreamOpen)
		a.reports()
	})
}

// proves SEC-1
func TestStrangerOfAnUnknownProtocolChangesNothing(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		r.own = nil
		r.refused(speaking("web-0", 1, 9, 0), protocol.Refused_CERTIFICATE)
		if w.alive("web-0").Present() {
			t.Error("it got a lease")
		}
	})
}
