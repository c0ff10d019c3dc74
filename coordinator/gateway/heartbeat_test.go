package gateway_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// beat sends a heartbeat for a report and returns the answer.
func (a *agent) beat(report uint64) *protocol.GatewayMessage {
	a.t.Helper()
	a.number++
	a.send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Heartbeat{Heartbeat: &protocol.Heartbeat{
		Sequence: a.number, Report: report, CpuPercent: 12.5, MemoryPercent: 30,
	}}})
	answer := a.next()
	synctest.Wait()
	return answer
}

// A heartbeat renews the lease as a report does, and nothing is persisted for it.
//
// proves DET-1, DET-16
func TestHeartbeatsRenewTheLease(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		a.reports()
		count := r.commitsOf(store.KindReports)
		for range 12 {
			pass(interval)
			ack := a.beat(1).GetAck()
			if ack.GetSequence() != a.number || ack.GetReport() {
				t.Fatalf("heartbeat %d is answered with %v, want an acknowledgement", a.number, ack)
			}
		}
		w.shows("web-0", "one", 1, store.StreamOpen)
		if n := count(); n != 0 {
			t.Errorf("%d reports were persisted for heartbeats", n)
		}
		a.reports()
		pass(time.Second)
		if got := w.report("web-0").Record.Sequence; got != a.number {
			t.Errorf("report %d is persisted after a minute, want %d", got, a.number)
		}
	})
}

// The replica requests a report again that was not accepted or could not be persisted.
//
// proves DET-16
func TestReportsAreAskedForAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		a.reports()
		r.store.Faults().Cut()
		a.number++
		a.send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: &protocol.Report{Sequence: a.number}}})
		if nack := a.next().GetNack(); nack.GetSequence() != a.number {
			t.Errorf("without etcd report %d is answered with %v", a.number, nack)
		}
		r.store.Faults().Mend()
		if ack := a.untilAck(a.beat(a.number)); !ack.GetReport() {
			t.Errorf("after a report that was not accepted: %v, want a report asked for", ack)
		}
		a.reports()
		if ack := a.beat(a.number).GetAck(); ack.GetReport() {
			t.Errorf("after a report that was accepted: %v", ack)
		}
		accepted := a.number - 1
		w.put(w.keys.Report("web-0"), []byte("garbage"))
		pass(time.Second)
		if ack := a.beat(accepted).GetAck(); !ack.GetReport() {
			t.Errorf("after its report was spoiled in etcd: %v, want a report asked for", ack)
		}
		a.reports()
		pass(time.Second)
		if got := w.report("web-0").Record.Sequence; got != a.number {
			t.Errorf("report %d is in etcd, want %d", got, a.number)
		}
		if ack := a.beat(a.number).GetAck(); ack.GetReport() {
			t.Errorf("once it is persisted: %v", ack)
		}
	})
}

// untilAck skips what else the replica says.
func (a *agent) untilAck(m *protocol.GatewayMessage) *protocol.Ack {
	a.t.Helper()
	for m.GetAck() == nil {
		m = a.next()
	}
	return m.GetAck()
}
