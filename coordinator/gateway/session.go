package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/guard"
	"github.com/leasehold/leasehold/provider/clip"
	"github.com/leasehold/leasehold/store"
)

// Why a gateway ends a stream.
var (
	errSuperseded   = errors.New("a newer stream of this agent took over")
	errReplicaStops = errors.New("this replica stops")
	errCertificate  = errors.New("the certificate has ended and was not renewed")
	errDistrusted   = errors.New("the certificate's authority is no longer believed")
	errNoHello      = errors.New("no hello came")
)

type agentStream = grpc.BidiStreamingServer[protocol.AgentMessage, protocol.GatewayMessage]

// session is one stream of one agent. Its fields stand below the lock that guards them; the
// package's comment has the goroutines.
type session struct {
	g      *Gateway
	stream timedStream
	ctx    context.Context         // ends with the stream; the gateway can end it
	cancel context.CancelCauseFunc // ends ctx

	// From the hello, and fixed.
	instance string
	bootID   string
	epoch    uint64
	agent    string    // its version
	started  time.Time // when the agent began
	began    time.Time // when the stream did
	spoken   uint32    // the version of the protocol that both sides know; 0: there is none
	speaks   uint32    // that version, or the agent's own if there is none

	// From the registration, and fixed once the session is shared.
	entered  time.Time // when it was registered
	interval time.Duration
	ttl      time.Duration

	outbox outbox // messages and updates from other goroutines; it has its own lock
	wanted wanted
	proof  proof

	// mu is held while a message of the agent is handled, and while something is sent to it, by the
	// stream's goroutine or a sender. Until the welcome the stream's goroutine holds it.
	mu       sync.Mutex
	hello    *protocol.Hello   // until the agent is served, to save memory
	muted    bool              // only the stream's goroutine may send
	goodbye  *protocol.Goodbye // the agent's goodbye
	rate     guard.RateState
	sequence uint64 // of the last report or heartbeat
	reported uint64 // sequence of the last report
	held     uint64 // sequence of the last report that was accepted

	lastReport store.Report // as last given to the report writer
	persisted  time.Time    // when that was
	recalled   bool         // what was persisted before this session

	// The report writer's: the pending report under its own lock, and what it keeps between an
	// agent's reports, which it writes one after another.
	unwrittenReport pendingReport
	workload        *store.WorkloadExit // of the report that was written last
	outputKept      time.Time           // when a workload's last output went into the journal

	// exchange is held during each exchange with the store, so that what a session writes is
	// written in order. Waiting for it takes no longer than waiting for the store itself. It may be
	// taken while mu is held, and never the other way round.
	exchange   *semaphore.Weighted // a lock whose wait ends with a context
	asked      bool                // whether a write of alive was ever sent
	opened     store.Revision      // when alive was first written
	wrote      store.Revision      // when alive was last written
	lease      store.Lease
	state      store.StreamState // as alive has it; "": that is not known
	accepted   time.Time         // when the last report was accepted, or the session opened
	overdue    *time.Timer       // runs becomeOverdue on a goroutine of its own
	unrecorded bool              // the last read found no record, so nothing is renewed
	looked     time.Time         // when that was

	// What other goroutines note for the next report, without a lock.
	unwritten atomic.Bool // the last report was not persisted
	doubtful  atomic.Bool // alive may not be as state says
	missing   atomic.Bool // the cache shows no record before deleting

	seen struct { // copies for code that must not wait for s.exchange
		sync.Mutex
		opened, wrote store.Revision
	}
}

func newSession(g *Gateway, stream agentStream, end context.CancelCauseFunc, hello *protocol.Hello) *session {
	s := &session{
		g: g, stream: timedStream{agentStream: stream, timers: &g.timers}, ctx: stream.Context(), cancel: end,
		instance: hello.GetInstance(), bootID: hello.GetBootId(), epoch: hello.GetEpoch(), hello: hello,
		agent: hello.GetAgentVersion(), started: moment(hello.GetAgentStarted()), began: time.Now(),
		exchange: semaphore.NewWeighted(1),
	}
	s.mu.Lock()
	s.rate.Init()
	s.proof.renewals.Init()
	s.proof.peer, _ = peerOf(s.ctx)
	if version, ok := protocol.SupportedVersions().Common(versionsOf(hello)); ok {
		s.spoken = version
	}
	s.speaks = cmp.Or(s.spoken, versionsOf(hello).Newest)
	return s
}

// from returns the agent's address.
func (s *session) from() string {
	_, address := peerOf(s.ctx)
	return address
}

// firstHello waits for the hello that every stream opens with, for a short time.
func firstHello(stream agentStream, end context.CancelCauseFunc) (*protocol.Hello, error) {
	late := time.AfterFunc(callTimeout, func() { end(errNoHello) })
	msg, err := receive(stream)
	if !late.Stop() {
		return nil, status.Error(codes.DeadlineExceeded, errNoHello.Error())
	}
	if err != nil {
		return nil, err
	}
	h := msg.GetHello()
	if h == nil {
		return nil, status.Error(codes.InvalidArgument, "a stream begins with a hello")
	}
	if why := malformed(h); why != "" {
		return nil, status.Error(codes.InvalidArgument, why)
	}
	return h, nil
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
	if len(h.GetClaim()) > protocol.MaxClaim {
		return "hello: claim is too long"
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

func refusedMessage(refusal *protocol.Refused) *protocol.GatewayMessage {
	return &protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Refused{Refused: refusal}}
}

// greet sends the agent its first messages. From then on other goroutines may send.
func (s *session) greet() error {
	if err := s.welcome(); err != nil {
		return err
	}
	s.recallClaim()
	if err := s.sendFiles(); err != nil {
		return err
	}
	if err := s.sendWanted(); err != nil {
		return err
	}
	if err := s.sendTrust(s.hello.GetTrust()); err != nil {
		return err
	}
	s.hello = nil
	s.proof.watch(s)
	s.mu.Unlock()
	s.flush() // what was queued before the welcome
	return nil
}

// serve answers the agent until the stream ends, and then records how it ended.
func (s *session) serve() error {
	end := s.listen()
	s.mute()
	s.proof.rest()
	if why := s.closing(); why != nil {
		return s.closed(why, s.goodbye)
	}
	if end.theirs {
		return s.failed(end.err, s.goodbye)
	}
	s.ended(end.err, s.goodbye)
	return nil
}

// ending says why a stream is over.
type ending struct {
	err error
	// theirs means that the error came from the other side, and may be a violation.
	theirs bool
}

// mute waits until no other goroutine sends, and keeps them from sending.
func (s *session) mute() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.muted = true
}

// listen handles the agent's messages until the stream or the gateway ends, and returns why.
func (s *session) listen() ending {
	for {
		msg, err := receive(&s.stream)
		if err != nil {
			return ending{err, true}
		}
		wait, end := s.handle(msg)
		if end.err != nil {
			return end
		}
		s.flush()     // what was queued meanwhile
		if wait > 0 { // later messages wait at the agent
			pause := time.NewTimer(wait)
			select {
			case <-pause.C:
			case <-s.ctx.Done():
				pause.Stop()
			}
		}
	}
}

// handle handles a message. It returns how long to wait before the next one is read.
func (s *session) handle(msg received) (wait time.Duration, end ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing() != nil {
		return 0, ending{} // the agent is sent next why the session ends
	}
	wait, flood := s.rate.Take(time.Now(), msg.bytes)
	if flood != nil {
		return 0, ending{flood, true}
	}
	if err := s.violationIn(msg); err != nil {
		return 0, ending{err, true}
	}
	var err error
	switch kind := msg.GetKind().(type) {
	case *protocol.AgentMessage_Report:
		if err = s.report(kind.Report); err == nil && kind.Report.GetTrust() != "" {
			err = s.sendTrust(kind.Report.GetTrust())
		}
	case *protocol.AgentMessage_Heartbeat:
		if err = s.heartbeat(kind.Heartbeat); err == nil && s.lastReport.Trust != "" {
			err = s.sendTrust(s.lastReport.Trust)
		}
	case *protocol.AgentMessage_RenewCertificate:
		later, hasty := s.proof.renewals.Take()
		if hasty != nil {
			return 0, ending{hasty, true}
		}
		wait = max(wait, later)
		err = s.renewCertificate(kind.RenewCertificate)
	case *protocol.AgentMessage_FetchFile:
		err = s.fetchFile(kind.FetchFile)
	case *protocol.AgentMessage_SignRequest:
		later, hasty := s.wanted.files.takeRequest()
		if hasty != nil {
			return 0, ending{hasty, true}
		}
		wait = max(wait, later)
		err = s.sign(kind.SignRequest)
	case *protocol.AgentMessage_Goodbye:
		s.goodbye = kind.Goodbye
		s.leave(s.goodbye)
	}
	return wait, ending{err: err}
}

// closed records that the gateway itself has ended the stream.
func (s *session) closed(why error, goodbye *protocol.Goodbye) error {
	switch {
	case errors.Is(why, errSuperseded):
		s.stopTimer()
		s.g.deps.Meter.StreamClosed("superseded")
	case errors.Is(why, errRetired):
		s.stopTimer()
		s.g.deps.Meter.StreamClosed("retired")
	case errors.Is(why, errReplicaStops):
		s.stopTimer()
		s.g.deps.Meter.StreamClosed("stopping")
	case errors.Is(why, errCertificate), errors.Is(why, errDistrusted):
		s.g.refusals.Add(guard.Refusal{
			Rule: "SEC-1", What: "stream ended", Why: why.Error(), Address: s.from(),
			Claimed: s.instance, Proved: true,
		})
		s.ended(why, goodbye)
	default:
		s.ended(why, goodbye)
	}
	return nil
}

// farewell returns the last message on a stream that the gateway ends; nil: none.
func (s *session) farewell(why error) *protocol.Refused {
	var end *retired
	switch {
	case errors.Is(why, errSuperseded):
		return &protocol.Refused{Reason: protocol.Refused_SUPERSEDED, Message: errSuperseded.Error()}
	case errors.As(why, &end):
		return end.refused(s.instance)
	case errors.Is(why, errReplicaStops):
		return unavailable(errReplicaStops.Error())
	case errors.Is(why, errCertificate), errors.Is(why, errDistrusted):
		return &protocol.Refused{Reason: protocol.Refused_CERTIFICATE, Message: why.Error()}
	default:
		return nil
	}
}

func (s *session) openedAt() store.Revision {
	s.seen.Lock()
	defer s.seen.Unlock()
	return s.seen.opened
}

// openedAfter reports whether a session was registered after another one of the same instance.
// Revisions decide if both were registered at the same time. Between consecutive streams they do
// not: etcd may have lost its data in between, and count from 1 again.
func (s *session) openedAfter(other *session) bool {
	if other.began.After(s.entered) {
		return false
	}
	return s.openedAt() > other.openedAt()
}

func (s *session) wroteAt() store.Revision {
	s.seen.Lock()
	defer s.seen.Unlock()
	return s.seen.wrote
}

func (s *session) welcome() error {
	if err := s.exchange.Acquire(s.ctx, 1); err != nil {
		return err
	}
	lease := s.lease.ID
	s.exchange.Release(1)
	// Before the shard's settings are known, send no reconnect times: the agent has the times of
	// its bootstrap document or its last welcome. A leader relies on the times that agents have
	// when it gives them time to return (SAFE-1).
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

// ended records that the stream is gone: with a goodbye it left, without one it was lost (DET-3,
// DET-8).
func (s *session) ended(err error, goodbye *protocol.Goodbye) {
	s.stopTimer()
	if goodbye != nil {
		s.g.deps.Meter.StreamClosed("goodbye")
		s.g.deps.Logger.Info("agent left", "instance", s.instance, "epoch", s.epoch, "goodbye",
			goodbye.GetKind().String())
		return // the key has that already
	}
	why := "closed without goodbye"
	switch {
	case err == nil || errors.Is(err, io.EOF):
	case status.Code(err) == codes.Canceled || errors.Is(err, context.Canceled):
		// gRPC reports a reset and a silence that its pings ended in the same way
		why = "the connection broke without goodbye"
	default:
		why = status.Convert(err).Message()
	}
	s.g.deps.Meter.StreamClosed("lost")
	s.g.deps.Logger.Info("stream lost", "instance", s.instance, "epoch", s.epoch, "why", why)
	s.lost(why)
}

// leave records the agent's goodbye at once, so that what follows on the machine raises no alarm.
func (s *session) leave(b *protocol.Goodbye) {
	state, kind := store.StreamLeft, store.GoodbyeRestart
	switch b.GetKind() {
	case protocol.Goodbye_SHUTDOWN:
		kind = store.GoodbyeShutdown
	case protocol.Goodbye_EVACUATING:
		kind = store.GoodbyeEvacuating
	case protocol.Goodbye_MOVING:
		state, kind = store.StreamMoved, store.GoodbyeMoving
	default: // an agent with an unknown kind of goodbye is expected to return
	}
	ctx, cancel := context.WithTimeout(s.g.life, callTimeout)
	defer cancel()
	s.g.reports.settle(ctx, s) // reports from before come first
	s.setState(ctx, state, kind, clip.End(b.GetMessage(), maxText))
}

func (s *session) stopTimer() {
	if s.overdue != nil {
		s.overdue.Stop()
	}
}
