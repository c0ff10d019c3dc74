package crowd

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/checks"
	"github.com/leasehold/leasehold/agent/protocol"
)

// Field numbers of AgentMessage.
const (
	reportField    = 2
	heartbeatField = 5
)

// duty is what a coordinator has ordered and the agent reports as done.
type duty struct {
	hash      string
	checks    []*protocol.Check
	restarted string
	drained   string
}

// obey carries out an order at once, since nothing in it takes time here. It reports whether the
// next report has changed.
func (a *agent) obey(w *protocol.Wanted) (news bool) {
	if hash := w.GetConfigHash(); hash != "" && hash != a.duty.hash {
		a.duty.hash, a.duty.checks, news = a.loop.named(hash), nil, true
		if len(w.GetRun()) > 0 {
			a.duty.checks = append(a.duty.checks, &protocol.Check{Name: "process", Kind: "process", Healthy: true})
		}
		for _, c := range w.GetChecks() {
			a.duty.checks = append(a.duty.checks,
				&protocol.Check{Name: c.GetName(), Kind: checks.Kind(c), Healthy: true, Optional: c.GetOptional()})
		}
	}
	if token := w.GetRestartToken(); token != "" && token != a.duty.restarted {
		a.duty.restarted, news = token, true
	}
	if token := w.GetDrain().GetToken(); token != "" && token != a.duty.drained {
		a.duty.drained, news = token, true
	}
	if news {
		a.tail = nil
	}
	return news
}

// report returns an encoded report, valid until the next message. Concatenated parts of a protobuf
// message are the whole message: the part that changes with every report is encoded first, and the
// stored rest is appended.
func (l *loop) report(a *agent, sequence uint64, now time.Time) []byte {
	if a.tail == nil {
		a.tail = l.tailOf(a)
	}
	l.head.Sequence = sequence
	l.head.Sent.Seconds, l.head.Sent.Nanos = now.Unix(), int32(now.Nanosecond())
	l.head.MachineUptime.Seconds = int64(now.Sub(l.crowd.started)/time.Second) + 3600
	l.part, _ = proto.MarshalOptions{}.MarshalAppend(l.part[:0], &l.head) // it has no text that could be invalid
	l.message = protowire.AppendTag(l.message[:0], reportField, protowire.BytesType)
	l.message = protowire.AppendVarint(l.message, uint64(len(l.part)+len(a.tail)))
	l.message = append(l.message, l.part...)
	l.message = append(l.message, a.tail...)
	return l.message
}

// heartbeat returns an encoded heartbeat, valid until the next message.
func (l *loop) heartbeat(sequence, report uint64) []byte {
	l.beat.Sequence, l.beat.Report, l.beat.CpuPercent, l.beat.MemoryPercent = sequence, report, 12.5, 37.5
	l.part, _ = proto.MarshalOptions{}.MarshalAppend(l.part[:0], &l.beat) // it has no text that could be invalid
	l.message = protowire.AppendTag(l.message[:0], heartbeatField, protowire.BytesType)
	l.message = protowire.AppendBytes(l.message, l.part)
	return l.message
}

// tailOf returns the encoded part of an agent's reports that stays the same. Agents without
// certificates and orders of their own share one.
func (l *loop) tailOf(a *agent) []byte {
	plain := a.own == nil && a.work == nil && a.duty.restarted == "" && a.duty.drained == ""
	if plain && l.tails[a.duty.hash] != nil {
		return l.tails[a.duty.hash]
	}
	r := &protocol.Report{
		Healthy: true, Checks: a.duty.checks, ConfigHash: a.duty.hash, Restarted: a.duty.restarted,
		Drained: a.duty.drained,
		Host: &protocol.Host{
			CpuPercent: 12.5, MemoryPercent: 37.5, DiskPercent: 50, NetworkSent: 1 << 30,
			NetworkReceived: 3 << 30,
		},
	}
	for _, c := range r.GetChecks() {
		c.Since = timestamppb.New(l.crowd.started)
	}
	for _, span := range []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute} {
		r.Host.Windows = append(r.Host.Windows, &protocol.HostWindow{
			Span: durationpb.New(span), Covered: durationpb.New(span), CpuPercent: 12.5, MemoryPercent: 37.5,
			DiskPercent: 50,
			NetworkSent: 1 << 20, NetworkReceived: 3 << 20,
		})
	}
	if a.own != nil {
		r.Trust = l.crowd.certificates.digest
		r.Certificate = &protocol.OwnCertificate{Issuer: l.crowd.certificates.trust.Issuer, Ends: timestamppb.New(a.own.ends)}
	}
	r.Files = a.work.states()
	tail, err := proto.Marshal(r)
	if err != nil {
		l.counts.trouble("a report cannot be encoded") // it has text that is not UTF-8
		return []byte{}
	}
	if plain {
		l.tails[a.duty.hash] = tail
	}
	return tail
}
