package agent

import (
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
)

// beat decides what a stream sends in each interval: a report, or a heartbeat while the last report
// is still accurate.
type beat struct {
	known    bool             // the replica understands heartbeats
	interval time.Duration    // between two messages
	report   *protocol.Report // the last report sent; nil: one is due
	sent     time.Time
}

// handle takes from a replica's message what concerns reports. A report that was not accepted is
// sent again.
func (b *beat) handle(m *protocol.GatewayMessage) {
	switch kind := m.GetKind().(type) {
	case *protocol.GatewayMessage_Welcome:
		b.known = kind.Welcome.GetProtocol() >= protocol.Heartbeats
		b.interval = kind.Welcome.GetReportInterval().AsDuration()
	case *protocol.GatewayMessage_Ack:
		if kind.Ack.GetReport() {
			b.report = nil
		}
	case *protocol.GatewayMessage_Nack:
		b.report = nil
	}
}

// next returns the message to send for a report made now.
func (b *beat) next(report *protocol.Report, now time.Time) *protocol.AgentMessage {
	if b.known && b.report != nil && now.Sub(b.sent) < protocol.ReportDue(b.interval) && b.report.Stands(report) {
		return &protocol.AgentMessage{Kind: &protocol.AgentMessage_Heartbeat{Heartbeat: &protocol.Heartbeat{
			Sequence: report.GetSequence(), Report: b.report.GetSequence(),
			CpuPercent: float32(report.GetHost().GetCpuPercent()), MemoryPercent: float32(report.GetHost().GetMemoryPercent()),
		}}}
	}
	b.report, b.sent = report, now
	return &protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: report}}
}
