package gateway_test

import (
	"context"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// An abandoned write may still take effect: the next report corrects it, and is itself persisted.
//
// proves DET-6 proves DET-16
func TestOverdueThatIsWrittenLateIsPutRightByTheNextReport(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		const rarely = 30 * time.Second // so that the lease outlives it all
		w.put(w.keys.Instance("web-0"), store.Encode(store.Instance{
			Schema: store.Schema, ID: "web-0", Group: "web", Phase: store.Running, Managed: true,
			Spec: store.InstanceSpec{
				Provider: "mem",
				Report: store.ReportSpec{
					Interval: store.Duration(rarely),
					LeaseTTL: store.Duration(3*rarely + 2*time.Second),
				},
			},
		}))
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		a.reports()
		frozen := false
		r.beforeWriting("web-0", func() {
			w.db.Faults().ApplyAbandoned(true)
			w.db.Faults().Freeze()
			frozen = true
		})
		pass(rarely * 3 / 2)
		if !frozen {
			w.t.Fatal("the overdue report is not written down")
		}
		pass(11 * time.Second) // the gateway gives up
		w.db.Faults().Thaw()
		pass(time.Second)
		w.shows("web-0", "one", 1, store.StreamOverdue)

		if m := a.report(&protocol.Report{Healthy: false, Why: "process: ended"}); m.GetAck() == nil {
			t.Errorf("the report is answered with %v", m)
		}
		w.shows("web-0", "one", 1, store.StreamOpen)
		if rec := w.report("web-0").Record; rec.Healthy || rec.Sequence != a.number {
			t.Errorf("persisted is report %d, healthy %t; want report %d, which is not", rec.Sequence, rec.Healthy,
				a.number)
		}
		written := w.alive("web-0").Modified
		a.reports()
		if now := w.alive("web-0").Modified; now != written {
			t.Errorf("alive is written again at %d though nothing has changed", now)
		}
	})
}

// If it is unknown whether a report was written, the next one is written in any case.
//
// proves DET-16
func TestReportAfterALostAnswerIsWritten(t *testing.T) {
	for name, lose := range map[string]func(*replica){
		"answer":  func(r *replica) { r.store.Faults().LoseAnswer() },
		"request": func(r *replica) { r.store.Faults().LoseRequest() },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				r := w.serve("one")
				defer r.stop()
				w.record("web-0", store.Running)
				a := r.welcomed(hello("web-0", "boot1", 1))
				defer a.hangUp()
				a.reports()
				lose(r)
				a.report(&protocol.Report{Healthy: false, Why: "process: workload is not started yet"})
				pass(interval)
				a.reports()
				rec := w.report("web-0")
				if !rec.Record.Healthy || rec.Record.Sequence != a.number {
					t.Errorf("persisted is report %d, healthy %t; want report %d, which is healthy",
						rec.Record.Sequence, rec.Record.Healthy, a.number)
				}
				pass(interval)
				a.reports()
				if now := w.report("web-0").Modified; now != rec.Modified {
					t.Error("a report that says nothing new is written, though the last write is known to have happened")
				}
			})
		})
	}
}

// An agent that dies while its report is being taken says nothing of etcd: else every machine that
// crashes at that moment would give all others a time of grace.
//
// proves SAFE-1
func TestStreamThatBreaksInARenewalIsNoDisturbance(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		before := r.troubles()
		a := r.welcomed(hello("web-0", "boot1", 1))
		renewing := false
		r.beforeRenewing(func(ctx context.Context) {
			renewing = true
			<-ctx.Done()
		})
		a.send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: &protocol.Report{
			Sequence: 1,
			Healthy:  true,
		}}})
		pass(0)
		if !renewing {
			w.t.Fatal("the report is not being taken")
		}
		a.hangUp()
		pass(time.Second)
		w.shows("web-0", "one", 1, store.StreamLost)
		if n := r.troubles() - before; n != 0 {
			t.Errorf("%d disturbances: %v", n, r.disturbed)
		}

		// While the stream is there, a renewal that gets no answer is one, once less than half of
		// the lease is left.
		b := r.welcomed(hello("web-0", "boot1", 2))
		defer b.hangUp()
		pass(leaseTTL / 2)
		r.beforeRenewing(func(ctx context.Context) { <-ctx.Done() })
		if m := b.report(&protocol.Report{Healthy: true}); m.GetNack() == nil {
			t.Errorf("the report is answered with %v, though its renewal got no answer", m)
		}
		if n := r.troubles() - before; n != 1 {
			t.Errorf("%d disturbances, want 1: %v", n, r.disturbed)
		}
	})
}
