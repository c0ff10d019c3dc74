package gateway_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// proves DET-1
func TestHelloIsWelcomed(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Booting)
		a := r.call(hello("web-0", "boot1", 1))
		defer a.hangUp()
		m := a.next().GetWelcome()
		if m.GetReplica() != "one" || m.GetReportInterval().AsDuration() != interval ||
			m.GetLeaseTtl().AsDuration() != leaseTTL ||
			m.GetReconnectMax().AsDuration() != 30*time.Second || len(m.GetCoordinators()) != 1 {
			t.Errorf("welcome %v", m)
		}
		w.shows("web-0", "one", 1, store.StreamOpen)
		if got := w.alive("web-0"); got.Lease != store.LeaseID(m.GetLease()) || got.Lease == 0 ||
			got.Record.BootID != "boot1" {
			t.Errorf("alive is on lease %s with %+v, the welcome says %x", got.Lease, got.Record, m.GetLease())
		}
	})
}

// A replica that cannot read the shard's settings sends agents no reconnect times. They keep those
// that they have, from which a leader computes how long they may take to return.
//
// proves SAFE-1
func TestReplicaThatDoesNotKnowTheSettingsSendsNoWaits(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(w.keys.Shard(), []byte(`{"schema": 99}`))
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Booting)
		a := r.call(hello("web-0", "boot1", 1))
		defer a.hangUp()
		if m := a.next().GetWelcome(); m == nil || m.GetReconnectMin() != nil || m.GetReconnectMax() != nil {
			t.Errorf("welcome %v", m)
		}
	})
}

// proves DET-18
func TestHelloOfAnotherShardIsRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Booting)
		h := hello("web-0", "boot1", 1)
		h.Shard = "other"
		r.refused(h, protocol.Refused_WRONG_SHARD)
		if w.alive("web-0").Present() {
			t.Error("it got a lease")
		}
		got := r.Refusals().Recent()
		if len(got) != 1 || got[0].Instance != "web-0" || got[0].Why != "it is of another shard" {
			t.Errorf("the operator sees %+v", got)
		}
	})
}

// proves SEC-5
func TestMalformedHellosEndTheStream(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Booting)
		for name, spoil := range map[string]func(*protocol.Hello){
			"no instance":           func(h *protocol.Hello) { h.Instance = "" },
			"long instance":         func(h *protocol.Hello) { h.Instance = strings.Repeat("x", 101) },
			"no boot":               func(h *protocol.Hello) { h.BootId = "" },
			"no shard":              func(h *protocol.Hello) { h.Shard = "" },
			"long version":          func(h *protocol.Hello) { h.AgentVersion = strings.Repeat("x", 101) },
			"long digest":           func(h *protocol.Hello) { h.Trust = strings.Repeat("x", 101) },
			"path for an instance":  func(h *protocol.Hello) { h.Instance = "../groups/web" },
			"dots for an instance":  func(h *protocol.Hello) { h.Instance = ".." },
			"no protocol":           func(h *protocol.Hello) { h.Protocol = 0 },
			"no epoch":              func(h *protocol.Hello) { h.Epoch = 0 },
			"too long for the wire": func(h *protocol.Hello) { h.Trust = strings.Repeat("x", 300<<10) },
		} {
			h := hello("web-0", "boot1", 1)
			spoil(h)
			a := r.call(h)
			if msg := a.next(); msg != nil {
				t.Errorf("%s: %v", name, msg)
			}
			a.hangUp()
		}
		silent := r.call(nil)
		silent.ends()
		silent.hangUp()
		notHello := r.call(nil)
		notHello.send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: &protocol.Report{}}})
		notHello.ends()
		notHello.hangUp()
		if r.Streams() != 0 || w.alive("web-0").Present() {
			t.Errorf("%d streams, alive %+v", r.Streams(), w.alive("web-0").Record)
		}
	})
}

// proves DET-18
func TestAgentOfARecordThatIsBeingDeletedIsRetired(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Deleting)
		m := r.refused(hello("web-0", "boot1", 1), protocol.Refused_RETIRED)
		if rev := read[store.Instance](w, w.keys.Instance("web-0")).Modified; m.GetRevision() != int64(rev) ||
			m.GetPhase() != protocol.PhaseDeleting {
			t.Errorf("it is told %v, want revision %d", m, rev)
		}
		if w.alive("web-0").Present() || read[store.Stray](w, w.keys.Stray("web-0")).Present() {
			t.Error("it got a lease, or is taken for a stray")
		}
	})
}

// proves DET-18
func TestOlderEpochIsRefusedWithTheStoredOne(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 7))
		defer a.hangUp()
		for _, epoch := range []uint64{6, 7} {
			if m := r.refused(hello("web-0", "boot1", epoch), protocol.Refused_STALE_EPOCH); m.GetStoredEpoch() != 7 {
				t.Errorf("stored epoch %d, want 7", m.GetStoredEpoch())
			}
		}
		a.reports() // nothing happened to it
		b := r.welcomed(hello("web-0", "boot1", 8))
		defer b.hangUp()
		if m := a.next().GetRefused(); m.GetReason() != protocol.Refused_SUPERSEDED {
			t.Errorf("the older stream is told %v", m)
		}
		w.shows("web-0", "one", 8, store.StreamOpen)
	})
}

// proves DET-18
func TestSecondBootBesideAnOpenStreamIsRefusedAndRecorded(t *testing.T) {
	inWorld(t, func(w *world) {
		one, two := w.serve("one"), w.serve("two")
		defer one.stop()
		defer two.stop()
		w.record("web-0", store.Running)
		a := one.welcomed(hello("web-0", "boot1", 7))
		for range 3 {
			one.refused(hello("web-0", "boot2", 1), protocol.Refused_BOOT_CONFLICT)
			two.refused(hello("web-0", "boot2", 9), protocol.Refused_BOOT_CONFLICT)
		}
		for _, r := range []*replica{one, two} {
			if e := r.entries(); len(e) != 1 || e[0].Rule != "DET-18" || e[0].Instance != "web-0" {
				t.Errorf("journal %+v, want one entry, however often it tries", e)
			}
		}
		w.shows("web-0", "one", 7, store.StreamOpen)
		a.reports()
		a.hangUp()

		// The stream is gone: the machine has booted again, and its epochs start over.
		b := two.welcomed(hello("web-0", "boot2", 1))
		defer b.hangUp()
		w.shows("web-0", "two", 1, store.StreamOpen)
		for range 5 {
			pass(interval)
			b.reports()
		}
		w.shows("web-0", "two", 1, store.StreamOpen)
	})
}

// A record of a newer schema does not count as absent: a replica that cannot read it must not order
// its agent to stop.
//
// proves DET-18
func TestAgentOfAnUnreadableRecordIsNotRetired(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		w.put(w.keys.Instance("web-0"), []byte(`{"schema": 2}`))
		pass(time.Second)
		a.reports()
		r.refused(hello("web-0", "boot1", 2), protocol.Refused_UNAVAILABLE)

		// Nor after another listing.
		r.store.Faults().StallWatches()
		pass(4 * time.Second)
		r.store.Faults().ReleaseWatches()
		pass(time.Second)
		a.reports()
	})
}

func TestStoppingReplicaRefusesAgents(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		w.record("web-0", store.Running)
		w.record("web-1", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		r.end()
		if m := a.next(); m.GetMove() == nil {
			t.Errorf("the agent is told %v, want to move", m)
		}
		r.refused(hello("web-1", "boot1", 1), protocol.Refused_UNAVAILABLE)
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			r.stop()
		}()
		// It does not move, and is hung up on; whether the last word still reaches it is the
		// network's affair.
		if m := a.next(); m != nil && m.GetRefused().GetReason() != protocol.Refused_UNAVAILABLE {
			t.Errorf("the agent is told %v", m)
		}
		a.hangUp()
		<-stopped
		w.shows("web-0", "one", 1, store.StreamOpen) // left as it was: the agent is on its way to another replica
	})
}
