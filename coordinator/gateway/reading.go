package gateway

import (
	"errors"
	"math"
	"sync"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/protocol"
)

// reading is a message with a report, read into the place of one that was read before: nearly all
// that agents say are reports, and hardly anything in one is new. It comes to what proto.Unmarshal
// comes to, which FuzzAgentMessage holds it to; but that allocates every part again.
type reading struct {
	message protocol.AgentMessage
	kind    protocol.AgentMessage_Report
	report  protocol.Report

	sent        timestamppb.Timestamp
	uptime      durationpb.Duration
	checks      []*checkRead
	host        protocol.Host
	windows     []*windowRead
	exit        protocol.WorkloadExit
	exited      timestamppb.Timestamp
	notice      protocol.Notice
	noticed     timestamppb.Timestamp
	in          durationpb.Duration
	certificate protocol.OwnCertificate
	ends        timestamppb.Timestamp

	// said are the words as they were read last.
	said struct{ why, config, restarted, drained, trust, issuer, signal, kind, whyNotice words }
}

type checkRead struct {
	check protocol.Check
	since timestamppb.Timestamp
	took  durationpb.Duration
	said  struct{ name, why, kind words }
}

type windowRead struct {
	window        protocol.HostWindow
	span, covered durationpb.Duration
}

var readings = sync.Pool{New: func() any {
	in := &reading{}
	in.kind.Report = &in.report
	in.message.Kind = &in.kind
	return in
}}

// release gives a message back of which nothing is looked at any more. Words of it may live on, for
// they never change.
func (m received) release() {
	if in := m.in; in != nil && len(in.checks) <= mostChecks && len(in.windows) <= mostWindows {
		readings.Put(in)
	}
}

// reportIn is the report that is all of a message; false if it has anything else in it.
func reportIn(message []byte) ([]byte, bool) {
	const report = 2<<3 | byte(protowire.BytesType)
	if len(message) == 0 || message[0] != report {
		return nil, false
	}
	part, n := protowire.ConsumeBytes(message[1:])
	return part, n == len(message)-1
}

var errNoText = errors.New("a text is not valid UTF-8")

// words is a text that is likely to be the same the next time.
type words string

func (w *words) read(data []byte, to *string) error {
	if *w != words(data) { // which makes no string
		if !utf8.Valid(data) {
			return errNoText
		}
		if len(data) > mostText {
			*to = string(data)
			return nil
		}
		*w = words(data)
	}
	*to = string(*w)
	return nil
}

// Wire types.
const (
	wireVarint  = uint64(protowire.VarintType)
	wireFixed64 = uint64(protowire.Fixed64Type)
	wireBytes   = uint64(protowire.BytesType)
)

// fields goes through the fields of a message.
type fields struct {
	left []byte
	tag  uint64 // number<<3 | type of the present one
	n    uint64 // its value, unless it is
	data []byte // bytes
	err  error
}

func (f *fields) next() bool {
	if len(f.left) == 0 || f.err != nil {
		return false
	}
	number, kind, n := protowire.ConsumeTag(f.left)
	if n < 0 {
		return f.fail(protowire.ParseError(n))
	}
	f.left, f.tag = f.left[n:], uint64(number)<<3|uint64(kind)
	switch kind {
	case protowire.VarintType:
		f.n, n = protowire.ConsumeVarint(f.left)
	case protowire.Fixed64Type:
		f.n, n = protowire.ConsumeFixed64(f.left)
	case protowire.BytesType:
		f.data, n = protowire.ConsumeBytes(f.left)
	default: // of a newer agent
		n = protowire.ConsumeFieldValue(number, kind, f.left)
	}
	if n < 0 {
		return f.fail(protowire.ParseError(n))
	}
	f.left = f.left[n:]
	return true
}

func (f *fields) fail(err error) bool {
	f.err = err
	return false
}

// note keeps the first error.
func (f *fields) note(err error) {
	if f.err == nil {
		f.err = err
	}
}

// words reads the present field's text.
func (f *fields) words(w *words, to *string) { f.note(w.read(f.data, to)) }

// read makes the reading that of a report.
func (in *reading) read(data []byte) error {
	r := &in.report
	r.Sequence, r.Sent, r.MachineUptime, r.Healthy, r.Why, r.Checks, r.Host, r.WorkloadExit = 0, nil, nil, false, "",
		r.Checks[:0], nil, nil
	r.ConfigHash, r.Restarted, r.Drained, r.Notice, r.Trust, r.Certificate = "", "", "", nil, "", nil
	f := fields{left: data}
	for f.next() {
		switch f.tag {
		case 1<<3 | wireVarint:
			r.Sequence = f.n
		case 2<<3 | wireBytes:
			f.moment(&r.Sent, &in.sent)
		case 3<<3 | wireBytes:
			f.length(&r.MachineUptime, &in.uptime)
		case 4<<3 | wireVarint:
			r.Healthy = f.n != 0
		case 5<<3 | wireBytes:
			f.words(&in.said.why, &r.Why)
		case 6<<3 | wireBytes:
			if len(r.Checks) == len(in.checks) {
				in.checks = append(in.checks, &checkRead{})
			}
			c := in.checks[len(r.Checks)]
			r.Checks = append(r.Checks, &c.check)
			f.note(c.read(f.data))
		case 7<<3 | wireBytes:
			f.note(in.readHost(f.data))
		case 8<<3 | wireBytes:
			f.note(in.readExit(f.data))
		case 9<<3 | wireBytes:
			f.words(&in.said.config, &r.ConfigHash)
		case 10<<3 | wireBytes:
			f.words(&in.said.restarted, &r.Restarted)
		case 11<<3 | wireBytes:
			f.words(&in.said.drained, &r.Drained)
		case 12<<3 | wireBytes:
			f.note(in.readNotice(f.data))
		case 13<<3 | wireBytes:
			f.words(&in.said.trust, &r.Trust)
		case 14<<3 | wireBytes:
			f.note(in.readCertificate(f.data))
		}
	}
	return f.err
}

func (c *checkRead) read(data []byte) error {
	to := &c.check
	to.Name, to.Healthy, to.Optional, to.Why, to.Since, to.Kind, to.Pending, to.Against, to.Threshold, to.Took = "",
		false, false, "", nil, "", false, 0, 0, nil
	f := fields{left: data}
	for f.next() {
		switch f.tag {
		case 1<<3 | wireBytes:
			f.words(&c.said.name, &to.Name)
		case 2<<3 | wireVarint:
			to.Healthy = f.n != 0
		case 3<<3 | wireVarint:
			to.Optional = f.n != 0
		case 4<<3 | wireBytes:
			f.words(&c.said.why, &to.Why)
		case 5<<3 | wireBytes:
			f.moment(&to.Since, &c.since)
		case 6<<3 | wireBytes:
			f.words(&c.said.kind, &to.Kind)
		case 7<<3 | wireVarint:
			to.Pending = f.n != 0
		case 8<<3 | wireVarint:
			to.Against = uint32(f.n)
		case 9<<3 | wireVarint:
			to.Threshold = uint32(f.n)
		case 10<<3 | wireBytes:
			f.length(&to.Took, &c.took)
		}
	}
	return f.err
}

func (in *reading) readHost(data []byte) error {
	h := &in.host
	if in.report.Host == nil {
		in.report.Host = h
		h.CpuPercent, h.MemoryPercent, h.DiskPercent, h.NetworkSent, h.NetworkReceived, h.Windows = 0, 0, 0, 0, 0,
			h.Windows[:0]
	}
	f := fields{left: data}
	for f.next() {
		switch f.tag {
		case 1<<3 | wireFixed64:
			h.CpuPercent = f.float()
		case 2<<3 | wireFixed64:
			h.MemoryPercent = f.float()
		case 3<<3 | wireFixed64:
			h.DiskPercent = f.float()
		case 4<<3 | wireVarint:
			h.NetworkSent = f.n
		case 5<<3 | wireVarint:
			h.NetworkReceived = f.n
		case 6<<3 | wireBytes:
			if len(h.Windows) == len(in.windows) {
				in.windows = append(in.windows, &windowRead{})
			}
			w := in.windows[len(h.Windows)]
			h.Windows = append(h.Windows, &w.window)
			f.note(w.read(f.data))
		}
	}
	return f.err
}

func (w *windowRead) read(data []byte) error {
	to := &w.window
	to.Span, to.Covered, to.CpuPercent, to.MemoryPercent, to.DiskPercent, to.NetworkSent, to.NetworkReceived = nil, nil,
		0, 0, 0, 0, 0
	f := fields{left: data}
	for f.next() {
		switch f.tag {
		case 1<<3 | wireBytes:
			f.length(&to.Span, &w.span)
		case 2<<3 | wireBytes:
			f.length(&to.Covered, &w.covered)
		case 3<<3 | wireFixed64:
			to.CpuPercent = f.float()
		case 4<<3 | wireFixed64:
			to.MemoryPercent = f.float()
		case 5<<3 | wireFixed64:
			to.DiskPercent = f.float()
		case 6<<3 | wireVarint:
			to.NetworkSent = f.n
		case 7<<3 | wireVarint:
			to.NetworkReceived = f.n
		}
	}
	return f.err
}

func (in *reading) readExit(data []byte) error {
	w := &in.exit
	if in.report.WorkloadExit == nil {
		in.report.WorkloadExit = w
		w.Code, w.Signal, w.At, w.Output = 0, "", nil, nil
	}
	f := fields{left: data}
	for f.next() {
		switch f.tag {
		case 1<<3 | wireVarint:
			w.Code = int32(f.n)
		case 2<<3 | wireBytes:
			f.words(&in.said.signal, &w.Signal)
		case 3<<3 | wireBytes:
			f.moment(&w.At, &in.exited)
		case 4<<3 | wireBytes:
			w.Output = append([]byte(nil), f.data...)
		}
	}
	return f.err
}

func (in *reading) readNotice(data []byte) error {
	n := &in.notice
	if in.report.Notice == nil {
		in.report.Notice = n
		n.Kind, n.Why, n.In, n.At = "", "", nil, nil
	}
	f := fields{left: data}
	for f.next() {
		switch f.tag {
		case 1<<3 | wireBytes:
			f.words(&in.said.kind, &n.Kind)
		case 2<<3 | wireBytes:
			f.words(&in.said.whyNotice, &n.Why)
		case 3<<3 | wireBytes:
			f.length(&n.In, &in.in)
		case 4<<3 | wireBytes:
			f.moment(&n.At, &in.noticed)
		}
	}
	return f.err
}

func (in *reading) readCertificate(data []byte) error {
	c := &in.certificate
	if in.report.Certificate == nil {
		in.report.Certificate = c
		c.Issuer, c.Ends = "", nil
	}
	f := fields{left: data}
	for f.next() {
		switch f.tag {
		case 1<<3 | wireBytes:
			f.words(&in.said.issuer, &c.Issuer)
		case 2<<3 | wireBytes:
			f.moment(&c.Ends, &in.ends)
		}
	}
	return f.err
}

func (f *fields) float() float64 { return math.Float64frombits(f.n) }

// moment reads the present field's time, into a place for it.
func (f *fields) moment(at **timestamppb.Timestamp, place *timestamppb.Timestamp) {
	if *at == nil {
		place.Seconds, place.Nanos = 0, 0
		*at = place
	}
	f.parts(&place.Seconds, &place.Nanos)
}

// length does the same with a duration.
func (f *fields) length(of **durationpb.Duration, place *durationpb.Duration) {
	if *of == nil {
		place.Seconds, place.Nanos = 0, 0
		*of = place
	}
	f.parts(&place.Seconds, &place.Nanos)
}

func (f *fields) parts(seconds *int64, nanos *int32) {
	in := fields{left: f.data}
	for in.next() {
		switch in.tag {
		case 1<<3 | wireVarint:
			*seconds = int64(in.n)
		case 2<<3 | wireVarint:
			*nanos = int32(in.n)
		}
	}
	f.note(in.err)
}
