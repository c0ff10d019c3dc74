package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// Why a gateway ends a stream.
var (
	errSuperseded   = errors.New("a newer stream of this agent took over")
	errRetired      = errors.New("the instance is retired")
	errReplicaStops = errors.New("this replica stops")
	errCertificate  = errors.New("the certificate has ended and was not renewed")
	errDistrusted   = errors.New("the certificate's authority is no longer believed")
)

const errNoHello = "no hello came"

type agentStream = grpc.BidiStreamingServer[protocol.AgentMessage, protocol.GatewayMessage]

// session is one stream of one agent.
type session struct {
	g        *Gateway
	stream   agentStream
	ctx      context.Context // ends with the stream, or when the gateway closes the session
	cancel   context.CancelCauseFunc
	instance string
	bootID   string
	epoch    uint64
	hello    *protocol.Hello
	peer     string
	spoken   uint32 // the version of the protocol that both sides know; 0: there is none

	outbox chan *protocol.GatewayMessage // what others than the stream's goroutine want said
	wanted wanted
	proof  proof
	pace   pace

	// talk is held by whoever deals with a message of the agent, or says something to it: the one that listens and the one that serves.
	talk     turn
	hushed   bool              // nothing is dealt with any more
	goodbye  *protocol.Goodbye // what the agent has said of its leaving
	sequence uint64            // of the last report

	// turn is held over each exchange with the store, so that what a session writes is written in order. Whoever waits for
	// it waits no longer than for the store itself.
	turn       turn
	limit      limit          // of the renewal for a report
	asked      bool           // whether a write of alive was ever sent
	opened     store.Revision // when alive was first written
	wrote      store.Revision // when alive was last written
	lease      store.Lease
	state      store.StreamState
	interval   time.Duration
	ttl        time.Duration
	accepted   time.Time // when the last report was accepted, or the session opened
	persisted  time.Time
	lastReport store.Report // as last persisted
	recalled   bool         // what was persisted before this session
	overdue    *time.Timer

	note       note                // what is to be written down
	unwritten  atomic.Bool         // what was to be written down last was not
	doubtful   atomic.Bool         // alive may not be as state says
	workload   *store.WorkloadExit // of the report that was written last; the writer's, as is
	outputKept time.Time           // when a workload's last words went into the journal

	seen struct { // copies for those who must not wait for their turn
		sync.Mutex
		opened, wrote store.Revision
	}
}

func newSession(g *Gateway, stream agentStream, hello *protocol.Hello) *session {
	s := &session{
		g: g, stream: &patient{agentStream: stream}, instance: hello.GetInstance(), bootID: hello.GetBootId(), epoch: hello.GetEpoch(), hello: hello,
		outbox: make(chan *protocol.GatewayMessage, 16), wanted: newWanted(), proof: newProof(), turn: make(turn, 1), talk: make(turn, 1),
		pace: newPace(),
	}
	s.ctx, s.cancel = context.WithCancelCause(stream.Context())
	s.proof.peer, s.peer = peerOf(stream.Context())
	if version, ok := protocol.Spoken().Common(versionsOf(hello)); ok {
		s.spoken = version
	}
	return s
}

// firstHello waits for the hello that every stream opens with, for a short time.
func firstHello(stream agentStream) (*protocol.Hello, error) {
	type first struct {
		msg letter
		err error
	}
	got := make(chan first, 1)
	go func() { // ends with the stream at the latest
		msg, err := receive(stream)
		got <- first{msg, err}
	}()
	timeout := time.NewTimer(callTimeout)
	defer timeout.Stop()
	select {
	case <-timeout.C:
		return nil, status.Error(codes.DeadlineExceeded, errNoHello)
	case f := <-got:
		if f.err != nil {
			return nil, f.err
		}
		h := f.msg.GetHello()
		if h == nil {
			return nil, status.Error(codes.InvalidArgument, "a stream begins with a hello")
		}
		if why := malformed(h); why != "" {
			return nil, status.Error(codes.InvalidArgument, why)
		}
		return h, nil
	}
}

func malformed(h *protocol.Hello) string {
	for _, f := range []struct {
		name, value string
		most        int
	}{
		{"instance", h.GetInstance(), 100}, {"boot_id", h.GetBootId(), 100}, {"shard", h.GetShard(), 100},
	} {
		if f.value == "" || len(f.value) > f.most {
			return fmt.Sprintf("hello: %s must have 1 to %d characters", f.name, f.most)
		}
	}
	if len(h.GetAgentVersion()) > 100 || len(h.GetTrust()) > 100 {
		return "hello: agent_version or trust is too long"
	}
	if !identity.IsName(h.GetInstance()) { // it becomes part of keys
		return "hello: instance is no name"
	}
	if h.GetProtocol() == 0 {
		return "hello: protocol must be at least 1"
	}
	if h.GetEpoch() == 0 {
		return "hello: epoch must be at least 1"
	}
	return ""
}

func refusedMessage(reason protocol.Refused_Reason, message string, epoch uint64) *protocol.GatewayMessage {
	return &protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Refused{Refused: &protocol.Refused{Reason: reason, Message: message, StoredEpoch: epoch}}}
}

// serve answers the agent until the stream ends, and then writes down how it ended.
func (s *session) serve() error {
	if err := s.welcome(); err != nil {
		s.ended(err, nil)
		return err
	}
	if err := s.sendWanted(); err != nil {
		s.ended(err, nil)
		return nil
	}
	if err := s.sendTrust(s.hello.GetTrust()); err != nil {
		s.ended(err, nil)
		return nil
	}
	stopProof := s.proof.watch(s)
	defer stopProof()
	heard := make(chan ending, 1)
	go func() { heard <- s.listen() }() // ends with the stream, which ends when this method returns
	for {
		var err error
		select {
		case <-s.ctx.Done():
			if s.stream.Context().Err() != nil && errors.Is(context.Cause(s.ctx), context.Cause(s.stream.Context())) {
				return s.over(<-heard) // which says more, and comes at once
			}
			s.hush()
			return s.closed(s.goodbye)
		case end := <-heard:
			return s.over(end)
		case msg := <-s.outbox:
			err = s.say(func() error { return s.stream.Send(msg) })
		case <-s.wanted.changed:
			err = s.say(s.sendWanted)
		case <-s.proof.ends():
			err = s.say(s.certificateEnded)
		case <-s.proof.trust:
			err = s.say(s.trustChanged)
		}
		if err != nil {
			s.hush()
			return s.over(ending{err: err})
		}
	}
}

// ending is why a stream is over.
type ending struct {
	err error
	// theirs: it came from the other side, and may be an offence.
	theirs bool
}

func (s *session) over(end ending) error {
	if end.theirs {
		return s.failed(end.err, s.goodbye)
	}
	s.ended(end.err, s.goodbye)
	return nil
}

// say has something said while nothing that the agent said is being dealt with.
func (s *session) say(do func() error) error {
	if err := s.talk.take(s.ctx); err != nil {
		return nil // that it ends is noticed by itself
	}
	defer s.talk.give()
	return do()
}

// hush waits until nothing that the agent said is being dealt with, and has nothing be dealt with any more.
func (s *session) hush() {
	s.talk <- struct{}{}
	s.hushed = true
	s.talk.give()
}

// listen deals with what the agent says until that ends, and says why.
func (s *session) listen() ending {
	for {
		msg, err := receive(s.stream)
		if err != nil {
			return ending{err, true}
		}
		wait, end := s.hear(msg)
		if end.err != nil {
			return end
		}
		if wait > 0 { // what comes meanwhile waits with the agent
			pause := time.NewTimer(wait)
			select {
			case <-pause.C:
			case <-s.ctx.Done():
				pause.Stop()
			}
		}
	}
}

// hear deals with a message. It says how long to wait before anything else is read.
func (s *session) hear(msg letter) (wait time.Duration, end ending) {
	defer msg.release()
	if err := s.talk.take(s.ctx); err != nil {
		return 0, ending{err, true}
	}
	defer s.talk.give()
	if s.hushed {
		return 0, ending{context.Cause(s.ctx), true}
	}
	wait, flood := s.pace.take(time.Now(), msg.bytes)
	if flood != nil {
		return 0, ending{flood, true}
	}
	if err := s.offensive(msg); err != nil {
		return 0, ending{err, true}
	}
	var err error
	switch kind := msg.GetKind().(type) {
	case *protocol.AgentMessage_Report:
		if err = s.report(kind.Report); err == nil && kind.Report.GetTrust() != "" {
			err = s.sendTrust(kind.Report.GetTrust())
		}
	case *protocol.AgentMessage_RenewCertificate:
		later, hasty := s.proof.take()
		if hasty != nil {
			return 0, ending{hasty, true}
		}
		wait = max(wait, later)
		err = s.renewCertificate(kind.RenewCertificate)
	case *protocol.AgentMessage_Goodbye:
		s.goodbye = kind.Goodbye
		s.leave(s.goodbye)
	}
	return wait, ending{err: err}
}

// closed ends a stream that the gateway itself has ended, or whose transport is gone.
func (s *session) closed(goodbye *protocol.Goodbye) error {
	switch cause := context.Cause(s.ctx); {
	case errors.Is(cause, errSuperseded):
		s.stopTimer()
		s.g.deps.Meter.StreamClosed("superseded")
		_ = s.stream.Send(refusedMessage(protocol.Refused_SUPERSEDED, errSuperseded.Error(), 0))
	case errors.Is(cause, errRetired):
		s.stopTimer()
		s.g.deps.Meter.StreamClosed("retired")
		_ = s.stream.Send(refusedMessage(protocol.Refused_RETIRED, "instance "+s.instance+" is being deleted", 0))
	case errors.Is(cause, errReplicaStops):
		s.stopTimer()
		s.g.deps.Meter.StreamClosed("stopping")
		_ = s.stream.Send(refusedMessage(protocol.Refused_UNAVAILABLE, errReplicaStops.Error(), 0))
	case errors.Is(cause, errCertificate), errors.Is(cause, errDistrusted):
		s.g.refusals.Add(Refusal{Rule: "SEC-1", What: "stream ended", Why: cause.Error(), Address: s.peer, Claimed: s.instance, Proved: true})
		_ = s.stream.Send(refusedMessage(protocol.Refused_CERTIFICATE, cause.Error(), 0))
		s.ended(cause, goodbye)
	default:
		s.ended(cause, goodbye)
	}
	return nil
}

// close ends the session from outside. The key is left alone: whoever took over owns it.
func (s *session) close(why error) { s.cancel(why) }

// ask has something said to the agent, if its stream keeps up. What is dropped is repeated by the next change or not needed.
func (s *session) ask(msg *protocol.GatewayMessage) {
	select {
	case s.outbox <- msg:
	default:
	}
}

func (s *session) openedAt() store.Revision {
	s.seen.Lock()
	defer s.seen.Unlock()
	return s.seen.opened
}

func (s *session) wroteAt() store.Revision {
	s.seen.Lock()
	defer s.seen.Unlock()
	return s.seen.wrote
}

func (s *session) welcome() error {
	if err := s.turn.take(s.ctx); err != nil {
		return err
	}
	lease := s.lease.ID
	s.turn.give()
	// Before we know the shard we say nothing of waiting: the agent knows it from whoever made it, or welcomed it last. What it is told is what a
	// leader counts on when it gives agents the time to return (SAFE-1).
	var least, most *durationpb.Duration
	if settings, known := s.g.known(); known {
		least, most = durationpb.New(settings.ReconnectMin.D()), durationpb.New(settings.ReconnectMax.D())
	}
	return s.stream.Send(&protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Welcome{Welcome: &protocol.Welcome{
		Replica: s.g.cfg.Replica, Lease: int64(lease),
		ReportInterval: durationpb.New(s.interval), LeaseTtl: durationpb.New(s.ttl),
		ReconnectMin: least, ReconnectMax: most,
		Coordinators: s.g.addresses(), Now: timestamppb.Now(), Protocol: s.spoken,
	}}})
}

// ended writes down that the stream is gone: with a goodbye it left, without one it was lost (DET-3, DET-8).
func (s *session) ended(err error, goodbye *protocol.Goodbye) {
	s.stopTimer()
	if goodbye != nil {
		s.g.deps.Meter.StreamClosed("goodbye")
		s.g.deps.Logger.Info("agent left", "instance", s.instance, "epoch", s.epoch, "goodbye", goodbye.GetKind().String())
		return // the key says so already
	}
	why := "closed without goodbye"
	switch {
	case err == nil || errors.Is(err, io.EOF):
	case status.Code(err) == codes.Canceled || errors.Is(err, context.Canceled):
		why = "the connection broke without goodbye" // all that gRPC tells of a reset, or of a silence that its pings ended
	default:
		why = status.Convert(err).Message()
	}
	s.g.deps.Meter.StreamClosed("lost")
	s.g.deps.Logger.Info("stream lost", "instance", s.instance, "epoch", s.epoch, "why", why)
	s.lost(why)
}

// leave writes the agent's goodbye down at once, so that what follows on the machine is no alarm.
func (s *session) leave(b *protocol.Goodbye) {
	state, kind := store.StreamLeft, store.GoodbyeRestart
	switch b.GetKind() {
	case protocol.Goodbye_SHUTDOWN:
		kind = store.GoodbyeShutdown
	case protocol.Goodbye_EVACUATING:
		kind = store.GoodbyeEvacuating
	case protocol.Goodbye_MOVING:
		state, kind = store.StreamMoved, store.GoodbyeMoving
	default: // an agent that knows other kinds than we do is taken to come back
	}
	ctx, cancel := context.WithTimeout(s.g.life, callTimeout)
	defer cancel()
	s.g.notes.settle(ctx, s) // what it said before comes first
	s.setState(ctx, state, kind, clip(b.GetMessage(), mostText))
}

func (s *session) stopTimer() {
	if s.overdue != nil {
		s.overdue.Stop()
	}
}

// turn is a lock that can be waited for no longer than a context lasts.
type turn chan struct{}

func (t turn) take(ctx context.Context) error {
	if t.tryTake() {
		return nil
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tryTake takes it if nobody has it.
func (t turn) tryTake() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

func (t turn) give() { <-t }
