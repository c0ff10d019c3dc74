package crowd

import (
	"errors"
	"slices"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/session"
)

// How is a way to silence an agent.
type How string

// The ways to silence an agent.
const (
	Mute How = "mute" // the agent hangs: its stream stays open, but it sends nothing more
	Cut  How = "cut"  // its connection (or, if that is shared, its stream) breaks, and it does not come back
	// its machine hangs: nothing answers, not even the connection if it is the agent's own. On a
	// shared connection Freeze is the same as Mute.
	Freeze How = "freeze"
)

var (
	errOver = errors.New("the crowd has ended")
	errCut  = errors.New("the bench has cut it off")
)

// agent is one agent. Its loop's lock guards it.
type agent struct {
	loop   *loop
	id     string
	number int // number of its shared connection, or of the agent

	session *session.Session
	wake    time.Time // when it is due; zero: never
	at      int       // index in the queue; -1: not queued
	due     []session.Event

	streams []*stream
	warm    *line
	next    string          // coordinator to which a second connection will be opened; "": none
	nextAt  time.Time       // when that is due
	cold    int             // failures in a row
	own     *identification // nil: none yet

	duty  duty
	work  *workCertificate // of its workload; nil: it has none
	tail  []byte           // encoded reports
	sent  []sent           // unacknowledged messages, oldest first
	last  sent             // last acknowledged report
	acked time.Time        // when it was acknowledged
	lease int64            // last known lease
	stood countedState     // the state under which it is counted
	lost  time.Time        // when it lost its coordinator, after the last acknowledgement; zero: it has one
	begun bool
	quiet *Silenced       // nil: not silenced
	heard []session.Event // events to handle when the silence ends
}

// sent is a report or a heartbeat that was sent.
type sent struct {
	sequence uint64
	at       time.Time
}

// countedState is the state under which an agent is counted.
type countedState struct {
	registered bool
	replica    string
	silent     bool
}

// step passes an event, or the time alone, to the agent's session and carries out its commands.
func (a *agent) step(now time.Time, ev session.Event) {
	if a.quiet != nil {
		if over, ok := ev.(session.Ended); ok {
			a.heard = append(a.heard, over)
		}
		return
	}
	if !a.begun {
		a.begun = true
		a.loop.counts.begun++
	}
	a.carryOut(now, a.session.Step(now, ev))
	for len(a.due) > 0 {
		next := a.due[0]
		a.due = a.due[1:]
		a.carryOut(now, a.session.Step(now, next))
	}
	a.due = nil
	a.stand(now)
	a.loop.call(a, a.tend(now))
}

// tend opens the second connection when that is due, and returns when the agent is due next.
func (a *agent) tend(now time.Time) time.Time {
	wake := a.session.Wake()
	if at := a.renewWork(now); wake.IsZero() || !at.IsZero() && at.Before(wake) {
		wake = at
	}
	switch {
	case a.next == "":
	case !now.Before(a.nextAt):
		a.makeWarm(a.next)
	case wake.IsZero() || a.nextAt.Before(wake):
		wake = a.nextAt
	}
	return wake
}

func (a *agent) carryOut(now time.Time, orders []session.Order) {
	counts := &a.loop.counts
	for _, order := range orders {
		switch o := order.(type) {
		case session.Remember:
			if l := o.Memory.Lease; l != a.lease {
				if a.lease != 0 && l != 0 {
					counts.newLeases++
				}
				a.lease = l
			}
		case session.Open:
			counts.streams++
			if a.last.sequence != 0 {
				counts.reconnects++
			}
			a.open(now, o)
		case session.Report:
			a.report(now, o)
		case session.Close:
			if s := a.stream(o.Stream); s != nil {
				a.forget(s)
				if o.Keep {
					a.keep(s)
				} else {
					s.end(o.Goodbye, o.Why)
				}
			}
		case session.Warm:
			a.keepWarm(o.Address, now.Add(o.After))
		case session.Wanted:
			if a.obey(o.Wanted) {
				a.due = append(a.due, session.Changed{}) // DET-1
			}
		case session.Note:
			if o.Warn {
				counts.trouble(o.Text)
			}
		}
	}
}

func (a *agent) stream(stream session.Stream) *stream {
	for _, s := range a.streams {
		if s.name == stream {
			return s
		}
	}
	return nil
}

func (a *agent) forget(s *stream) {
	a.streams = slices.DeleteFunc(a.streams, func(o *stream) bool { return o == s })
}

// report sends a report, or a heartbeat if nothing has changed since the last report.
func (a *agent) report(now time.Time, o session.Report) {
	s := a.stream(o.Stream)
	if s == nil || s.stream == nil {
		return
	}
	var message []byte
	if s.heartbeats && s.report != 0 && a.tail != nil && now.Sub(s.reported) < protocol.ReportDue(s.interval) {
		message = a.loop.heartbeat(o.Sequence, s.report)
	} else {
		message = a.loop.report(a, o.Sequence, now)
		s.report, s.reported = o.Sequence, now
	}
	if !s.stream.Send(message) {
		a.loop.counts.dropped++ // the session notices that it is not acknowledged
		s.report = 0
		return
	}
	a.loop.counts.reports++
	if o.Sequence == 1 {
		a.sent = a.sent[:0] // of the previous stream
	}
	if len(a.sent) < maxSent {
		a.sent = append(a.sent, sent{o.Sequence, now})
	}
}

// maxSent bounds the number of unacknowledged messages that are remembered.
const maxSent = 16

// hear records a coordinator's message before the session handles it.
func (a *agent) hear(now time.Time, s *stream, m *protocol.GatewayMessage) {
	counts := &a.loop.counts
	switch kind := m.GetKind().(type) {
	case *protocol.GatewayMessage_Ack:
		counts.acks++
		if kind.Ack.GetReport() {
			s.report = 0
		}
		if at, found := a.answered(kind.Ack.GetSequence()); found {
			a.last, a.acked = at, now
			counts.latency.Add(now.Sub(at.at))
			if !a.lost.IsZero() {
				counts.outage.Add(now.Sub(a.lost))
				a.lost = time.Time{}
			}
			if a.quiet != nil {
				a.quiet.Sent, a.quiet.Acked = at.at, now
			}
		}
	case *protocol.GatewayMessage_Nack:
		counts.nacks++
		a.answered(kind.Nack.GetSequence())
		s.report = 0
	case *protocol.GatewayMessage_Move:
		counts.moves++
	case *protocol.GatewayMessage_Refused:
		counts.refused[kind.Refused.GetReason().String()]++
	case *protocol.GatewayMessage_Files:
		a.wantWork(now, kind.Files)
	case *protocol.GatewayMessage_Signed:
		if a.takeWork(now, kind.Signed) {
			a.due = append(a.due, session.Changed{}) // DET-1
		}
	case *protocol.GatewayMessage_Welcome:
		s.replica = a.loop.named(kind.Welcome.GetReplica())
		s.heartbeats = kind.Welcome.GetProtocol() >= protocol.Heartbeats
		s.interval = kind.Welcome.GetReportInterval().AsDuration()
	}
}

// answered forgets the messages up to a sequence, and returns the one with that sequence.
func (a *agent) answered(sequence uint64) (at sent, found bool) {
	n := 0
	for n < len(a.sent) && a.sent[n].sequence <= sequence {
		at, found = a.sent[n], a.sent[n].sequence == sequence
		n++
	}
	a.sent = slices.Delete(a.sent, 0, n)
	return at, found
}

// stand updates the state under which the agent is counted.
func (a *agent) stand(now time.Time) {
	var is countedState
	if stream, serving := a.session.Serving(); serving && a.quiet == nil {
		if s := a.stream(stream); s != nil {
			is.registered, is.replica = true, s.replica
		}
	}
	is.silent = a.quiet != nil
	if is == a.stood {
		return
	}
	if a.stood.registered && !is.registered && !is.silent && a.lost.IsZero() {
		a.lost = now
	}
	a.loop.counts.move(a.stood, is)
	a.stood = is
}

// silence silences the agent.
func (a *agent) silence(how How) {
	if a.quiet != nil {
		return
	}
	a.quiet = &Silenced{How: how, At: a.loop.crowd.now(), Sent: a.last.at, Acked: a.acked}
	a.loop.counts.silenced[a.id] = a.quiet
	switch {
	case how == Cut:
		a.cut()
	case how == Freeze && a.loop.crowd.certificates != nil:
		for _, ln := range a.linesOf() {
			if ln.conn != nil {
				ln.conn.Freeze()
			}
		}
	}
	a.lost = time.Time{}
	a.stand(a.quiet.At)
	a.loop.call(a, time.Time{})
}

// cut closes all streams and connections of the agent. The session learns of it when the silence
// ends.
func (a *agent) cut() {
	for _, s := range a.streams {
		s.breakOff()
		a.heard = append(a.heard, session.Ended{Stream: s.name, Err: errCut})
	}
	a.streams = nil
	if a.warm != nil {
		a.warm.breakOff()
		a.warm = nil
	}
}

// comeBack ends the silence.
func (a *agent) comeBack() {
	if a.quiet == nil {
		return
	}
	delete(a.loop.counts.silenced, a.id)
	a.quiet = nil
	for _, ln := range a.linesOf() {
		if ln.conn != nil {
			ln.conn.Thaw()
		}
	}
	now := a.loop.crowd.now()
	missed := a.heard
	a.heard = nil
	for _, ev := range missed {
		a.step(now, ev)
	}
	a.step(now, nil)
}

// vanish removes the agent from its loop.
func (a *agent) vanish() {
	delete(a.loop.counts.silenced, a.id)
	a.loop.call(a, time.Time{})
	a.cut()
	a.loop.counts.move(a.stood, countedState{})
	a.loop.counts.agents--
	if a.begun {
		a.loop.counts.begun--
	}
	a.quiet, a.heard, a.stood = &Silenced{}, nil, countedState{} // for what still arrives on its streams
}

// linesOf returns the agent's own connections.
func (a *agent) linesOf() []*line {
	var out []*line
	if a.loop.crowd.certificates == nil {
		return out
	}
	for _, s := range a.streams {
		out = append(out, s.line)
	}
	if a.warm != nil {
		out = append(out, a.warm)
	}
	return out
}
