package crowd

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/session"
	"github.com/leasehold/leasehold/cmd/bench/crowd/wire"
)

// goodbyeWait is how long a coordinator may take to close a stream after a goodbye.
const goodbyeWait = 2 * time.Second

// stream is one stream of an agent. The loop's lock guards it, except in the listener's methods.
type stream struct {
	agent   *agent
	name    session.Stream
	hello   session.Open
	line    *line
	stream  *wire.Stream // nil: still connecting
	replica string       // the replica that welcomed it
	late    *time.Timer  // ends the stream if the coordinator does not after a goodbye
	kept    bool         // the line belongs to this agent alone

	heartbeats bool          // the replica understands heartbeats
	interval   time.Duration // between messages
	report     uint64        // sequence of the last report; 0: a report is due
	reported   time.Time     // when it was sent
}

// open opens a stream as soon as there is a connection for it.
func (a *agent) open(now time.Time, o session.Open) {
	s := &stream{agent: a, name: o.Stream, hello: o}
	a.streams = append(a.streams, s)
	s.line = a.lineTo(o.Address)
	if s.line.conn == nil {
		s.line.waiting = append(s.line.waiting, s)
		return
	}
	if err := s.begin(now); err != nil {
		a.forget(s)
		s.leaveLine(err)
		a.due = append(a.due, session.Ended{Stream: s.name, Err: err})
		a.loop.counts.trouble(plain(err))
	}
}

// begin opens the stream on an open connection.
func (s *stream) begin(now time.Time) error {
	hello, err := proto.Marshal(s.agent.hello(s.hello))
	if err != nil {
		return err
	}
	if s.stream, err = s.line.conn.Open(s); err != nil {
		return err
	}
	s.stream.Send(hello)
	return nil
}

// hello returns the first message of a stream.
func (a *agent) hello(o session.Open) *protocol.AgentMessage {
	c := a.loop.crowd
	spoken := protocol.SupportedVersions()
	h := &protocol.Hello{
		Protocol: spoken.Oldest, NewestProtocol: spoken.Newest, Shard: c.cfg.ShardID, Instance: a.id, BootId: c.bootID,
		Epoch: o.Epoch, Lease: o.Lease, AgentVersion: c.cfg.Version, AgentStarted: timestamppb.New(c.started),
		Waits: true,
	}
	if c.certificates != nil {
		h.Trust = c.certificates.digest
	}
	return &protocol.AgentMessage{Kind: &protocol.AgentMessage_Hello{Hello: h}}
}

// Said handles a message from the coordinator.
func (s *stream) Said(message []byte) {
	m := &protocol.GatewayMessage{}
	err := proto.Unmarshal(message, m)
	l := s.agent.loop
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || s.late != nil || s.agent.stream(s.name) != s {
		return
	}
	if err != nil {
		l.counts.trouble("a message cannot be read")
		return
	}
	now := l.crowd.now()
	s.agent.hear(now, s, m)
	s.agent.step(now, session.Heard{Stream: s.name, Message: m})
}

// Ended handles the end of the stream.
func (s *stream) Ended(err error) {
	l := s.agent.loop
	l.mu.Lock()
	defer l.mu.Unlock()
	s.over(err)
}

// over handles an end that the other side, or the network, has caused.
func (s *stream) over(err error) {
	if s.late != nil {
		s.late.Stop()
	}
	s.leaveLine(wire.ErrClosed)
	a := s.agent
	if a.loop.over || a.stream(s.name) != s {
		return
	}
	a.forget(s)
	if err != nil && a.quiet == nil {
		a.loop.counts.trouble(plain(err))
	}
	a.step(a.loop.crowd.now(), session.Ended{Stream: s.name, Err: err})
}

// end ends the stream, after a goodbye if one is due. The agent no longer refers to it.
func (s *stream) end(kind protocol.Goodbye_Kind, why string) {
	if kind == protocol.Goodbye_KIND_UNSPECIFIED || s.stream == nil {
		s.giveUp()
		return
	}
	goodbye,
		err := proto.Marshal(&protocol.AgentMessage{
		Kind: &protocol.AgentMessage_Goodbye{Goodbye: &protocol.Goodbye{Kind: kind, Message: why}},
	})
	if err != nil || !s.stream.SendLast(goodbye) {
		s.giveUp()
		return
	}
	l := s.agent.loop
	s.late = time.AfterFunc(goodbyeWait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		s.giveUp()
	})
}

// giveUp ends the stream at once. It may be called again.
func (s *stream) giveUp() {
	if s.stream != nil {
		s.stream.Cancel()
	}
	s.leaveLine(wire.ErrClosed)
}

// breakOff ends the stream without a goodbye, as a failed network does.
func (s *stream) breakOff() {
	if s.line.shared {
		s.giveUp()
		return
	}
	s.line.breakOff()
}

// leaveLine removes the stream from its connection, and closes the connection if it is the agent's
// own.
func (s *stream) leaveLine(why error) {
	switch {
	case s.line.shared:
		s.line.unwait(s)
	case !s.kept:
		s.line.close(why)
	}
}
