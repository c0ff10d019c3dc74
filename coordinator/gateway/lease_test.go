package gateway_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// proves DET-2
func TestReportsRenewTheLeaseAndNothingElseDoes(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		for range 20 {
			pass(interval)
			a.reports()
		}
		lease := w.alive("web-0").Lease
		if lease != store.LeaseID(a.lease) {
			t.Errorf("alive is on %s, the agent was told %x", lease, a.lease)
		}
		// The stream stays open and its pings are answered, but the lease ends.
		pass(leaseTTL - time.Millisecond)
		w.shows("web-0", "one", 1, store.StreamOverdue)
		pass(time.Millisecond)
		if w.alive("web-0").Present() {
			t.Errorf("alive after %s without a report: %+v", leaseTTL, w.alive("web-0").Record)
		}
		pass(time.Minute)
		if w.alive("web-0").Present() || r.Streams() != 1 {
			t.Errorf("%d streams; put back without a report: %+v", r.Streams(), w.alive("web-0").Record)
		}
		a.reports() // it was only asleep
		w.shows("web-0", "one", 1, store.StreamOpen)
		if w.alive("web-0").Lease == lease {
			t.Error("it is back on the lease that ended")
		}
	})
}

// proves DET-6
func TestStreamIsOverdueAfterOneAndAHalfIntervals(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		for range 3 {
			a.reports()
			before := w.alive("web-0").Modified
			pass(interval*3/2 - time.Millisecond)
			if now := w.alive("web-0"); now.Modified != before || now.Record.State != store.StreamOpen {
				t.Errorf("alive was written without a change: %+v", now.Record)
			}
			pass(time.Millisecond)
			w.shows("web-0", "one", 1, store.StreamOverdue)
			a.reports()
			w.shows("web-0", "one", 1, store.StreamOpen)
		}
	})
}

// proves DET-3
func TestStreamThatEndsWithoutAGoodbyeIsLost(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		lease := w.alive("web-0").Lease
		a.hangUp()
		w.shows("web-0", "one", 1, store.StreamLost)
		if now := w.alive("web-0"); now.Lease != lease || now.Record.Why == "" {
			t.Errorf("alive is on %s with %+v, want it on %s still, and why", now.Lease, now.Record, lease)
		}
		pass(leaseTTL)
		if w.alive("web-0").Present() {
			t.Error("the lease of a lost stream goes on")
		}
	})
}

// proves DET-8
func TestGoodbyes(t *testing.T) {
	for kind, want := range map[protocol.Goodbye_Kind]struct {
		state   store.StreamState
		goodbye store.Goodbye
	}{
		protocol.Goodbye_RESTART:    {store.StreamLeft, store.GoodbyeRestart},
		protocol.Goodbye_SHUTDOWN:   {store.StreamLeft, store.GoodbyeShutdown},
		protocol.Goodbye_EVACUATING: {store.StreamLeft, store.GoodbyeEvacuating},
		protocol.Goodbye_MOVING:     {store.StreamMoved, store.GoodbyeMoving},
		protocol.Goodbye_Kind(99):   {store.StreamLeft, store.GoodbyeRestart},
	} {
		t.Run(kind.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				r := w.serve("one")
				defer r.stop()
				w.record("web-0", store.Running)
				a := r.welcomed(hello("web-0", "boot1", 1))
				pass(time.Second)
				a.goodbye(kind)
				pass(0)
				w.shows("web-0", "one", 1, want.state)
				a.hangUp()
				w.shows("web-0", "one", 1, want.state) // the end of the stream does not change what was said
				if g := w.alive("web-0").Record.Goodbye; g != want.goodbye {
					t.Errorf("goodbye %q, want %q", g, want.goodbye)
				}
			})
		})
	}
}

// An agent that moves keeps its lease: the key is never absent.
//
// proves DET-8
// proves DET-18
func TestAgentMovesWithItsLease(t *testing.T) {
	inWorld(t, func(w *world) {
		one, two := w.serve("one"), w.serve("two")
		defer one.stop()
		defer two.stop()
		w.record("web-0", store.Running)
		a := one.welcomed(hello("web-0", "boot1", 1))
		a.reports()
		created := w.alive("web-0").Created
		h := hello("web-0", "boot1", 2)
		h.Lease = a.lease
		b := two.welcomed(h)
		defer b.hangUp()
		w.shows("web-0", "two", 2, store.StreamOpen)
		if now := w.alive("web-0"); now.Created != created || int64(now.Lease) != a.lease || b.lease != a.lease {
			t.Errorf("alive was created again, or is on another lease: %+v", now)
		}
		// The old stream is ended as soon as its replica sees the new one, and its end changes
		// nothing.
		if m := a.next().GetRefused(); m.GetReason() != protocol.Refused_SUPERSEDED {
			t.Errorf("the old stream is told %v", m)
		}
		a.hangUp()
		w.shows("web-0", "two", 2, store.StreamOpen)
	})
}

// The old replica sees nothing and is slow: whatever it still writes of its stream, the new session
// stays.
//
// proves DET-18
func TestLateWritesOfAnOldEpochNeverOverwrite(t *testing.T) {
	inWorld(t, func(w *world) {
		one, two := w.serve("one"), w.serve("two")
		defer one.stop()
		defer two.stop()
		w.record("web-0", store.Running)
		a := one.welcomed(hello("web-0", "boot1", 1))
		a.report(&protocol.Report{Healthy: false, Why: "ill"})
		one.store.Faults().StallWatches() // it does not see what follows, for 3s
		b := two.welcomed(hello("web-0", "boot1", 2))
		defer b.hangUp()
		b.reports()
		a.report(&protocol.Report{Healthy: false, Why: "worse"}) // a report on its way for long
		if rep := w.report("web-0").Record; !rep.Healthy || rep.Epoch != 2 {
			t.Errorf("the report of the old stream stands: %+v", rep)
		}
		a.goodbye(protocol.Goodbye_SHUTDOWN)
		pass(0)
		w.shows("web-0", "two", 2, store.StreamOpen)
		a.hangUp()
		w.shows("web-0", "two", 2, store.StreamOpen)
	})
}

// A report that reaches the old replica after the lease has ended is refused. etcd has answered, so
// that this is no disturbance.
//
// proves DET-18, SAFE-1
func TestLateReportOfAnOldEpochIsNoDisturbance(t *testing.T) {
	inWorld(t, func(w *world) {
		one, two := w.serve("one"), w.serve("two")
		defer one.stop()
		defer two.stop()
		w.record("web-0", store.Running)
		a := one.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		pass(leaseTTL * 2 / 3)
		one.store.Faults().StallWatches() // it does not see what follows, for 3s
		w.db.Faults().DropLease(w.alive("web-0").Lease)
		b := two.welcomed(hello("web-0", "boot1", 2))
		defer b.hangUp()
		b.reports()
		disturbed := one.troubles()
		if m := a.report(&protocol.Report{Healthy: true}); m.GetRefused().GetReason() != protocol.Refused_SUPERSEDED {
			t.Errorf("the report is answered with %v", m)
		}
		if n := one.troubles(); n != disturbed {
			t.Errorf("%d disturbances were noted, and %d before", n, disturbed)
		}
		w.shows("web-0", "two", 2, store.StreamOpen)
	})
}

// Two replicas, both of which believe that the agent is theirs, put a deleted key back: the newer
// session has it in the end.
//
// proves DET-17
// proves DET-18
func TestTwoReplicasRaceToPutAKeyBack(t *testing.T) {
	inWorld(t, func(w *world) {
		one, two := w.serve("one"), w.serve("two")
		defer one.stop()
		defer two.stop()
		w.record("web-0", store.Running)
		a := one.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		one.store.Faults().StallWatches()
		b := two.welcomed(hello("web-0", "boot1", 2))
		defer b.hangUp()
		w.db.Faults().DropLease(w.alive("web-0").Lease)
		one.store.Faults().ReleaseWatches()
		pass(time.Second)
		w.shows("web-0", "two", 2, store.StreamOpen)
		b.reports()
		if m := a.next().GetRefused(); m.GetReason() != protocol.Refused_SUPERSEDED {
			t.Errorf("the old stream is told %v", m)
		}
		// The same with another boot, whose epochs are lower.
		b.goodbye(protocol.Goodbye_RESTART)
		pass(0)
		two.store.Faults().StallWatches()
		c := one.welcomed(hello("web-0", "boot2", 1))
		defer c.hangUp()
		w.db.Faults().DropLease(w.alive("web-0").Lease)
		two.store.Faults().ReleaseWatches()
		pass(time.Second)
		w.shows("web-0", "one", 1, store.StreamOpen)
		c.reports()
	})
}

// A replica that has not seen the new boot renews for the old one, whose lease has ended.
//
// proves DET-18
func TestRegrantForAnOldBootDoesNotOverwriteTheNewOne(t *testing.T) {
	inWorld(t, func(w *world) {
		one, two := w.serve("one"), w.serve("two")
		defer one.stop()
		defer two.stop()
		w.record("web-0", store.Running)
		a := one.welcomed(hello("web-0", "boot1", 7))
		defer a.hangUp()
		one.store.Faults().StallWatches()
		w.db.Faults().DropLease(w.alive("web-0").Lease)
		b := two.welcomed(hello("web-0", "boot2", 1))
		defer b.hangUp()
		if m := a.report(&protocol.Report{Healthy: true}); m.GetRefused().GetReason() != protocol.Refused_SUPERSEDED {
			t.Errorf("the old boot's report is answered with %v", m)
		}
		w.shows("web-0", "two", 1, store.StreamOpen)
	})
}

// proves DET-17
func TestKeyDeletedUnderAnOpenStreamIsPutBack(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		pass(time.Second)
		a.reports()
		lease := w.alive("web-0").Lease
		w.db.Faults().DropLease(lease)
		pass(0)
		w.shows("web-0", "one", 1, store.StreamOpen)
		if w.alive("web-0").Lease == lease {
			t.Error("it is on the lease that was dropped")
		}
		if r.troubles() == 0 {
			t.Error("no disturbance for a living lease that etcd dropped")
		}
		a.reports()
		if int64(w.alive("web-0").Lease) != a.lease {
			t.Errorf("the agent is told lease %x, alive is on %s", a.lease, w.alive("web-0").Lease)
		}
	})
}

// proves DET-17
func TestNothingIsPutBackForAnAgentThatIsSilent(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		a.reports()
		pass(leaseTTL - time.Second)
		w.db.Faults().ChangeLeader() // every lease gets its full time again
		pass(2 * time.Second)
		w.db.Faults().DropLease(w.alive("web-0").Lease)
		pass(time.Second)
		if w.alive("web-0").Present() {
			t.Errorf("put back %s after its last report: %+v", leaseTTL+time.Second, w.alive("web-0").Record)
		}
	})
}

// A lease ends by when it was renewed, which is before the answer comes: on a busy replica by
// seconds.
//
// proves DET-17, SAFE-1
func TestNothingIsPutBackWhenALeaseEndsThatWasRenewedLate(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		calm := r.troubles()
		r.answersLate(3 * time.Second)
		a.reports()
		pass(leaseTTL - time.Second)
		if w.alive("web-0").Present() {
			t.Errorf("%s after it was renewed for the last time: %+v", leaseTTL+2*time.Second, w.alive("web-0").Record)
		}
		if r.troubles() != calm {
			t.Errorf("an agent that is silent is a disturbance: %v", r.disturbed)
		}
	})
}

// proves DET-18
func TestAgentOfARecordThatGoesIsRetired(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		for _, id := range []string{"web-0", "web-1"} {
			w.record(id, store.Running)
			a := r.welcomed(hello(id, "boot1", 1))
			if id == "web-0" {
				w.gone(id)
			} else {
				w.record(id, store.Deleting)
			}
			phase := map[string]string{"web-0": protocol.PhaseGone, "web-1": protocol.PhaseDeleting}[id]
			if m := a.next().GetRefused(); m.GetReason() != protocol.Refused_RETIRED || m.GetRevision() == 0 ||
				m.GetPhase() != phase {
				t.Errorf("%s is told %v", id, m)
			}
			a.ends()
			a.hangUp()
		}
		if r.Streams() != 0 {
			t.Errorf("%d streams are left", r.Streams())
		}
	})
}

// A replica that sees nothing renews no lease of a retired instance once that has ended. etcd has
// answered, so that this is no disturbance.
//
// proves DET-18, SAFE-1
func TestLeaseOfARetiredInstanceIsNotGrantedAnew(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		pass(leaseTTL * 2 / 3)
		r.store.Faults().StallWatches()
		w.record("web-0", store.Deleting)
		w.db.Faults().DropLease(w.alive("web-0").Lease)
		disturbed := r.troubles()
		if m := a.report(&protocol.Report{Healthy: true}); m.GetRefused().GetReason() != protocol.Refused_RETIRED {
			t.Errorf("the report is answered with %v", m)
		}
		if n := r.troubles(); n != disturbed {
			t.Errorf("%d disturbances were noted, and %d before", n, disturbed)
		}
		if w.alive("web-0").Present() {
			t.Error("it got another lease")
		}
	})
}

// A lost answer leaves the key on a lease that the session did not hear of: it is found, and
// renewed from then on.
//
// proves DET-2
func TestLeaseIsFoundAgainWhenTheAnswerWasLost(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		r.store.Faults().LoseAnswer()
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		if int64(w.alive("web-0").Lease) != a.lease {
			t.Errorf("alive is on %s, the welcome said %x", w.alive("web-0").Lease, a.lease)
		}
		pass(time.Second)
		a.reports()
		r.store.Faults().LoseAnswer()
		w.db.Faults().DropLease(w.alive("web-0").Lease)
		for range 10 {
			pass(interval)
			a.reports()
			if int64(w.alive("web-0").Lease) != a.lease {
				w.t.Fatalf("alive is on %s, the acknowledgement said %x", w.alive("web-0").Lease, a.lease)
			}
		}
		r.store.Faults().LoseAnswer() // of writing that it is overdue
		pass(2 * interval)
		a.report(&protocol.Report{Healthy: false, Why: "ill"})
		w.shows("web-0", "one", 1, store.StreamOpen)
		if w.report("web-0").Record.Healthy {
			t.Error("the report was not persisted: the session does not know its own key any more")
		}
	})
}

// proves DET-14, SAFE-1
func TestAgentsAreSentAwayWhenRenewalsFail(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		a.reports()
		calm := r.troubles()
		r.store.Faults().Cut()
		if m := a.report(&protocol.Report{Healthy: true}); m.GetNack().GetSequence() != a.number {
			w.t.Fatalf("the report is answered with %v, want a refusal to acknowledge", m)
		}
		if r.troubles() != calm {
			t.Errorf("the lease has all of its time left, and that is a disturbance: %v", r.disturbed)
		}
		pass(leaseTTL/3 + time.Millisecond)
		if m := a.report(&protocol.Report{Healthy: true}); m.GetNack() == nil {
			t.Errorf("the report is answered with %v", m)
		}
		if m := a.next(); m.GetMove() == nil {
			t.Errorf("after a third of the lease the agent is told %v, want to move", m)
		}
		pass(leaseTTL / 3)
		if m := a.report(&protocol.Report{Healthy: true}); m.GetNack() == nil {
			t.Errorf("the report is answered with %v", m)
		}
		if m := a.next(); m.GetMove() == nil {
			t.Errorf("the agent is told %v, want to move", m)
		}
		if r.troubles() == calm {
			t.Error("no disturbance for failing renewals")
		}
		r.store.Faults().Mend()
		a.reports()
	})
}

// Nothing hangs on a database that does not answer: the agent gets its answer within a third of its
// lease.
//
// proves DET-14
func TestFrozenStoreIsANackInTime(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		w.db.Faults().Freeze()
		began := time.Now()
		if m := a.report(&protocol.Report{Healthy: true}); m.GetNack() == nil || time.Since(began) > leaseTTL/3 {
			t.Errorf("after %s the report is answered with %v", time.Since(began), m)
		}
		pass(leaseTTL)
		w.db.Faults().Thaw() // which revokes the lease first of all
		a.reports()
		w.shows("web-0", "one", 1, store.StreamOpen)
	})
}
