package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/certificate"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/session"
)

const (
	// goodbyeWait is how long a replica may take to end a stream after our goodbye.
	goodbyeWait = 2 * time.Second

	// outboxSize is the number of messages that wait for a replica that does not read. A dropped
	// report is never acknowledged, so the session notices.
	outboxSize = 16
)

// stream is one stream to a replica. Only the loop calls its methods, except serve, which runs on
// the stream's own goroutine.
type stream struct {
	out    chan *protocol.AgentMessage
	ctx    context.Context // ends with the stream
	cancel context.CancelFunc

	address    string
	conn       *grpc.ClientConn // set before the first message
	generation uint64           // generation of the certificate when the stream began
	kept       chan struct{}    // closed if the connection outlives the stream
	beat       beat
}

// say sends a message, or drops it if the outbox is full.
func (s *stream) say(m *protocol.AgentMessage) (sent bool) {
	select {
	case s.out <- m:
		return true
	default:
		return false
	}
}

// sayBeat sends a report, or a heartbeat if the last report is still accurate.
func (s *stream) sayBeat(r *protocol.Report) {
	if !s.say(s.beat.next(r, time.Now())) {
		s.beat.report = nil
	}
}

// end ends the stream, which must not be used afterwards.
func (s *stream) end(kind protocol.Goodbye_Kind, why string) {
	if kind == protocol.Goodbye_KIND_UNSPECIFIED {
		s.cancel()
		return
	}
	s.say(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Goodbye{Goodbye: &protocol.Goodbye{
		Kind:    kind,
		Message: why,
	}}})
	close(s.out)
	late := time.AfterFunc(goodbyeWait, s.cancel)
	context.AfterFunc(s.ctx, func() { late.Stop() })
}

// open begins a stream and returns at once. A machine without a certificate joins first, at the
// same replica.
func (a *Agent) open(background context.Context, o session.Open) {
	ctx, cancel := context.WithCancel(background)
	s := &stream{
		out: make(chan *protocol.AgentMessage, outboxSize), ctx: ctx, cancel: cancel, address: o.Address,
		kept: make(chan struct{}),
	}
	a.streams[o.Stream] = s
	_, s.generation = a.deps.Certificate.Credentials(false)
	var err error
	if a.deps.Certificate.Status().Joined {
		s.conn, err = a.connections.take(o.Address)
	}
	hello := a.hello(o)
	a.running.Go(func() {
		defer cancel()
		if err == nil {
			err = a.deps.Certificate.Join(ctx,
				func(ctx context.Context, r *protocol.JoinRequest) (*protocol.Certificate, error) {
					return a.connections.join(ctx, o.Address, r)
				})
		}
		if err == nil && s.conn == nil {
			s.conn, err = a.connections.connect(o.Address, false)
		}
		if err == nil {
			hello.Trust = a.deps.Certificate.Status().Trust // joining may have changed it
			m := &protocol.AgentMessage{Kind: &protocol.AgentMessage_Hello{Hello: hello}}
			err = s.serve(ctx, m, func(m *protocol.GatewayMessage) {
				a.tell(session.Heard{Stream: o.Stream, Message: m})
			})
		}
		a.tell(session.Ended{Stream: o.Stream, Err: withoutGRPC(err), Logged: errors.Is(err, certificate.ErrNotJoined)})
	})
}

// hello returns the first message of a stream, without the trust.
func (a *Agent) hello(o session.Open) *protocol.Hello {
	spoken := protocol.SupportedVersions()
	return &protocol.Hello{
		Protocol: spoken.Oldest, NewestProtocol: spoken.Newest,
		Shard:        a.cfg.Bootstrap.Shard,
		Instance:     a.cfg.Bootstrap.Instance,
		BootId:       a.cfg.BootID,
		Epoch:        o.Epoch,
		Lease:        o.Lease,
		AgentVersion: a.cfg.Version,
		AgentStarted: timestamppb.New(a.started),
		Waits:        true,
		Claim:        a.assignment.Claim,
		Stopped:      a.stoppedFor(),
	}
}

// stoppedFor returns the revision of the record that ended this instance, once nothing runs any
// longer. It returns 0 while something runs, or while no record is known to have ended the instance
// (PROV-9).
func (a *Agent) stoppedFor() int64 {
	if c := a.memory.Condemned; c.Holds() && !a.mayRun && a.keeper.resting() {
		return c.Revision
	}
	return 0
}

// handle takes from a replica's message what concerns reports, the agent's certificate, files and
// signatures.
func (a *Agent) handle(ev session.Event) {
	said, ok := ev.(session.Heard)
	if !ok || a.streams[said.Stream] == nil {
		return
	}
	a.streams[said.Stream].beat.handle(said.Message)
	switch kind := said.Message.GetKind().(type) {
	case *protocol.GatewayMessage_Welcome:
		a.deps.Certificate.Tell(kind.Welcome.GetNow())
	case *protocol.GatewayMessage_Certificate:
		a.deps.Certificate.Accept(kind.Certificate)
	case *protocol.GatewayMessage_Trust:
		a.deps.Certificate.SetTrust(kind.Trust)
	case *protocol.GatewayMessage_Files, *protocol.GatewayMessage_FilePiece, *protocol.GatewayMessage_Signed:
		if serving, ok := a.session.Serving(); ok && serving == said.Stream {
			a.hearOfFiles(said.Message)
		}
	}
}

// renew asks for another certificate when it is due, on the serving stream. It returns when to call
// again.
func (a *Agent) renew(now time.Time) time.Time {
	serving, ok := a.session.Serving()
	s := a.streams[serving]
	if !ok || s == nil {
		return time.Time{} // a welcome comes first
	}
	request, look := a.deps.Certificate.Renewal(now)
	if request != nil {
		s.say(
			&protocol.AgentMessage{
				Kind: &protocol.AgentMessage_RenewCertificate{RenewCertificate: &protocol.RenewCertificate{Request: request}},
			},
		)
	}
	return look
}

// tell passes an event to the loop while the loop reads events.
func (a *Agent) tell(ev session.Event) {
	select {
	case a.events <- ev:
	case <-a.over:
	}
}

// serve runs the stream from its hello to its end. It returns nil if the replica ended it
// gracefully.
func (s *stream) serve(ctx context.Context, hello *protocol.AgentMessage,
	heard func(*protocol.GatewayMessage),
) error {
	mayKeep := false
	defer func() {
		if mayKeep { // the loop decides
			select {
			case <-s.kept:
				return
			case <-s.ctx.Done():
			}
		}
		_ = s.conn.Close()
	}()
	ctx, cancel := context.WithCancel(ctx)
	stream, err := protocol.NewGatewayClient(s.conn).Session(ctx)
	if err != nil {
		cancel()
		return err
	}
	var writer sync.WaitGroup
	defer writer.Wait()
	defer cancel()
	writer.Go(func() {
		// Recv returns the error of Send, with its reason.
		if stream.Send(hello) != nil {
			return
		}
		for {
			select {
			case <-ctx.Done():
				return
			case m, more := <-s.out:
				if !more {
					_ = stream.CloseSend()
					return
				}
				if stream.Send(m) != nil {
					return
				}
			}
		}
	})
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		mayKeep = m.GetRefused().GetAfter() != nil
		heard(m)
	}
}

// withoutGRPC unwraps a gRPC status into its code and message.
func withoutGRPC(err error) error {
	if s, ok := status.FromError(err); ok && err != nil {
		return fmt.Errorf("%s: %s", strings.ToLower(s.Code().String()), s.Message())
	}
	return err
}

// connections opens connections and keeps one ready beside the one in use (SAFE-11). Except for
// connect and join, only the loop uses it.
type connections struct {
	certificate Certificate
	dial        func(ctx context.Context, address string) (net.Conn, error)

	readyFor   string
	ready      *grpc.ClientConn
	generation uint64 // generation of the certificate when ready was made

	next   string    // address at which to open the next one; "": none
	nextAt time.Time // and when
}

// connect makes a connection. A bare one presents no certificate.
func (c *connections) connect(address string, bare bool) (*grpc.ClientConn, error) {
	secured, _ := c.certificate.Credentials(bare)
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(secured),
		grpc.WithContextDialer(c.dial),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: protocol.PingAfter, Timeout: protocol.PongTimeout, PermitWithoutStream: true,
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: time.Second, Multiplier: 2, Jitter: 0.5,
				MaxDelay: 30 * time.Second,
			},
			MinConnectTimeout: 5 * time.Second,
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	return conn, nil
}

// join asks a replica for the first certificate, on a connection of its own.
func (c *connections) join(ctx context.Context, address string, r *protocol.JoinRequest) (*protocol.Certificate,
	error,
) {
	conn, err := c.connect(address, true)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	spoken := protocol.SupportedVersions()
	r.Protocol, r.NewestProtocol = spoken.Oldest, spoken.Newest
	return protocol.NewGatewayClient(conn).Join(ctx, r)
}

// take returns a connection, for the caller to close: the one kept ready, or a new one. It does not
// use a failing connection, since gRPC would return its last error without trying.
func (c *connections) take(address string) (*grpc.ClientConn, error) {
	if c.ready == nil || c.readyFor != address {
		return c.connect(address, false)
	}
	conn := c.ready
	c.ready, c.readyFor = nil, ""
	if conn.GetState() == connectivity.Ready && !c.outdated() {
		return conn, nil
	}
	_ = conn.Close()
	return c.connect(address, false)
}

// keep keeps the connection of a refused stream open for the next attempt.
func (c *connections) keep(s *stream) {
	c.close()
	c.ready, c.readyFor, c.generation = s.conn, s.address, s.generation
	close(s.kept)
}

// warm keeps a connection to address open from the time at; "" closes it.
func (c *connections) warm(address string, at time.Time) {
	switch {
	case address == "":
		c.close()
	case c.ready != nil && c.readyFor == address:
		c.next = ""
		c.ready.Connect() // a broken connection is idle until it is used
	case c.next != address:
		c.next, c.nextAt = address, at
	}
}

// tend opens the connection that should be kept ready, if it is due. It returns when to call again.
func (c *connections) tend(now time.Time) time.Time {
	switch {
	case c.next == "":
		return time.Time{}
	case now.Before(c.nextAt):
		return c.nextAt
	}
	c.make(c.next)
	return time.Time{}
}

// make makes the connection that is kept ready.
func (c *connections) make(address string) {
	c.close()
	_, c.generation = c.certificate.Credentials(false)
	conn, err := c.connect(address, false)
	if err != nil {
		return // the error is reported when the connection is needed
	}
	conn.Connect()
	c.ready, c.readyFor = conn, address
}

// renew replaces the connection kept ready if it presented another certificate than a new one
// would.
func (c *connections) renew() {
	if c.ready == nil || c.next != "" || !c.outdated() {
		return
	}
	c.make(c.readyFor)
}

func (c *connections) outdated() bool {
	_, now := c.certificate.Credentials(false)
	return c.generation != now
}

func (c *connections) close() {
	c.next = ""
	if c.ready != nil {
		_ = c.ready.Close()
		c.ready, c.readyFor = nil, ""
	}
}
