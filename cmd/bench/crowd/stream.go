package crowd

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/session"
	"github.com/leasehold/leasehold/cmd/bench/crowd/wire"
)

// goodbyeWait is how long a coordinator may take to end a stream after a goodbye.
const goodbyeWait = 2 * time.Second

// stream is one stream of an agent. It is used with the loop's lock, but for what it hears.
type stream struct {
	agent   *agent
	name    session.Stream
	hello   session.Open
	line    *line
	stream  *wire.Stream // nil: its line is not there yet
	replica string       // that welcomed it
	late    *time.Timer  // runs after a goodbye
	kept    bool         // its line is the agent's

	heartbeats bool          // the replica understands them
	interval   time.Duration // of messages
	report     uint64        // sequence of the last report; 0: one is due
	reported   time.Time     // when it was sent
}

// open begins a stream, as soon as there is a connection for it.
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

// begin opens the stream on a connection that is there.
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

// hello is how the agent introduces itself.
func (a *agent) hello(o session.Open) *protocol.AgentMessage {
	c := a.loop.crowd
	spoken := protocol.Spoken()
	h := &protocol.Hello{
		Protocol: spoken.Oldest, NewestProtocol: spoken.Newest, Shard: c.cfg.ShardID, Instance: a.id, BootId: c.bootID,
		Epoch: o.Epoch, Lease: o.Lease, AgentVersion: c.cfg.Version, AgentStarted: timestamppb.New(c.started),
		Waits: true,
	}
	if c.papers != nil {
		h.Trust = c.papers.digest
	}
	return &protocol.AgentMessage{Kind: &protocol.AgentMessage_Hello{Hello: h}}
}

// Said is told what came on the stream.
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

// Ended is told that the stream is over.
func (s *stream) Ended(err error) {
	l := s.agent.loop
	l.mu.Lock()
	defer l.mu.Unlock()
	s.over(err)
}

// over is the end of a stream that the other side, or the network, has brought about.
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

// end ends the stream, after a goodbye if there is one to be said. The agent has forgotten it.
func (s *stream) end(kind protocol.Goodbye_Kind, why string) {
	if kind == protocol.Goodbye_KIND_UNSPECIFIED || s.stream == nil {
		s.giveUp()
		return
	}
	goodbye,
		err := proto.Marshal(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Goodbye{Goodbye: &protocol.Goodbye{Kind: kind, Message: why}}})
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

// breakOff ends the stream as the loss of the network does.
func (s *stream) breakOff() {
	if s.line.shared {
		s.giveUp()
		return
	}
	s.line.breakOff()
}

// leaveLine takes the stream off its connection, which ends with it if it is the agent's own.
func (s *stream) leaveLine(why error) {
	switch {
	case s.line.shared:
		s.line.unwait(s)
	case !s.kept:
		s.line.close(why)
	}
}
