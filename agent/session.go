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
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/contact"
	"github.com/leasehold/leasehold/agent/protocol"
)

const (
	protocolVersion = 1

	// A connection that says nothing is closed by gRPC within 15s (DET-3).
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 5 * time.Second

	// goodbyeWait is how long a replica may take to end a stream after our goodbye.
	goodbyeWait = 2 * time.Second

	// outboxSize is how many messages may wait for a replica that does not read. One that is dropped is never
	// acknowledged, and contact sees that.
	outboxSize = 16
)

// session is one stream. Its methods are called by the loop alone.
type session struct {
	out    chan *protocol.AgentMessage
	ctx    context.Context // ends with the session
	cancel context.CancelFunc
}

// say sends a message, or drops it if the replica has not read for long.
func (s *session) say(m *protocol.AgentMessage) {
	select {
	case s.out <- m:
	default:
	}
}

// end ends the stream; the session is not used afterwards.
func (s *session) end(kind protocol.Goodbye_Kind, why string) {
	if kind == protocol.Goodbye_KIND_UNSPECIFIED {
		s.cancel()
		return
	}
	s.say(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Goodbye{Goodbye: &protocol.Goodbye{Kind: kind, Message: why}}})
	close(s.out)
	late := time.AfterFunc(goodbyeWait, s.cancel)
	context.AfterFunc(s.ctx, func() { late.Stop() })
}

// open begins a stream and returns at once.
func (a *Agent) open(background context.Context, o contact.Open) {
	ctx, cancel := context.WithCancel(background)
	s := &session{out: make(chan *protocol.AgentMessage, outboxSize), ctx: ctx, cancel: cancel}
	a.sessions[o.Stream] = s
	conn, err := a.lines.take(o.Address)
	hello := &protocol.AgentMessage{Kind: &protocol.AgentMessage_Hello{Hello: &protocol.Hello{
		Protocol:     protocolVersion,
		Shard:        a.cfg.Bootstrap.Shard,
		Instance:     a.cfg.Bootstrap.Instance,
		BootId:       a.cfg.BootID,
		Epoch:        o.Epoch,
		Lease:        o.Lease,
		AgentVersion: a.cfg.Version,
		AgentStarted: timestamppb.New(a.started),
	}}}
	a.streams.Go(func() {
		defer cancel()
		if err == nil {
			err = s.converse(ctx, conn, hello, func(m *protocol.GatewayMessage) {
				a.tell(contact.Heard{Stream: o.Stream, Message: m})
			})
		}
		a.tell(contact.Ended{Stream: o.Stream, Err: err})
	})
}

// tell hands an event to the loop, as long as there is one.
func (a *Agent) tell(ev contact.Event) {
	select {
	case a.events <- ev:
	case <-a.over:
	}
}

// converse is the stream from its hello to its end; nil if the replica ended it in order.
func (s *session) converse(
	ctx context.Context, conn *grpc.ClientConn, hello *protocol.AgentMessage, heard func(*protocol.GatewayMessage),
) error {
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	stream, err := protocol.NewGatewayClient(conn).Session(ctx)
	if err != nil {
		cancel()
		return plain(err)
	}
	var writer sync.WaitGroup
	defer writer.Wait()
	defer cancel()
	writer.Go(func() {
		// An error of Send is told by Recv, with its reason.
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
			return plain(err)
		}
		heard(m)
	}
}

// plain says what a gRPC error means, without its envelope.
func plain(err error) error {
	if s, ok := status.FromError(err); ok {
		return fmt.Errorf("%s: %s", strings.ToLower(s.Code().String()), s.Message())
	}
	return err
}

// lines makes connections, and keeps one ready beside the one in use (SAFE-11). It is used by the loop alone.
type lines struct {
	credentials credentials.TransportCredentials
	dial        func(ctx context.Context, address string) (net.Conn, error)

	readyFor string
	ready    *grpc.ClientConn
}

func (l *lines) connect(address string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(l.credentials),
		grpc.WithContextDialer(l.dial),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: keepaliveTime, Timeout: keepaliveTimeout, PermitWithoutStream: true,
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: time.Second, Multiplier: 2, Jitter: 0.5, MaxDelay: 30 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	return conn, nil
}

// take returns a connection, for the caller to close: the one kept ready if it is, else a new one. One that
// is failing is not used, since gRPC would answer with its last error without trying.
func (l *lines) take(address string) (*grpc.ClientConn, error) {
	if l.ready == nil || l.readyFor != address {
		return l.connect(address)
	}
	conn := l.ready
	l.ready, l.readyFor = nil, ""
	if conn.GetState() == connectivity.Ready {
		return conn, nil
	}
	_ = conn.Close()
	return l.connect(address)
}

// warm makes this the connection that is kept ready; an empty address keeps none.
func (l *lines) warm(address string) {
	if l.ready != nil && l.readyFor == address {
		l.ready.Connect() // one that broke is idle until it is asked for
		return
	}
	l.close()
	if address == "" {
		return
	}
	conn, err := l.connect(address)
	if err != nil {
		return // told when it is needed
	}
	conn.Connect()
	l.ready, l.readyFor = conn, address
}

func (l *lines) close() {
	if l.ready != nil {
		_ = l.ready.Close()
		l.ready, l.readyFor = nil, ""
	}
}
