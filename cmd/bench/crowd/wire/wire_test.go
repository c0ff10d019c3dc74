package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/cmd/bench/crowd/wire"
)

type agentStream = grpc.BidiStreamingServer[protocol.AgentMessage, protocol.GatewayMessage]

// end is the other end: gRPC's own server, which does on each stream what a test wants.
type end struct {
	protocol.UnimplementedGatewayServer
	serve func(agentStream) error
}

func (e *end) Session(s agentStream) error { return e.serve(s) }

// side is what has come on a stream.
type side struct {
	mu       sync.Mutex
	messages []*protocol.GatewayMessage
	over     bool
	err      error
}

func (s *side) Said(message []byte) {
	m := &protocol.GatewayMessage{}
	err := proto.Unmarshal(message, m)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || s.over {
		panic(fmt.Sprintf("said after the end, or nothing that can be read: %v", err))
	}
	s.messages = append(s.messages, m)
}

func (s *side) Ended(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		panic("ended twice")
	}
	s.over, s.err = true, err
}

func (s *side) is() (said int, over bool, err error) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.messages), s.over, s.err
}

// bridge is a connection to gRPC's own server, in a synctest bubble.
type bridge struct {
	*wire.Conn
	server *grpc.Server
}

func across(t *testing.T, serve func(agentStream) error, test func(t *testing.T, b *bridge),
	options ...grpc.ServerOption,
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := bufconn.Listen(1 << 20)
		server := grpc.NewServer(options...)
		protocol.RegisterGatewayServer(server, &end{serve: serve})
		var work sync.WaitGroup
		defer work.Wait()
		work.Go(func() { _ = server.Serve(l) })
		defer server.Stop()
		raw, err := l.DialContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conn, err := wire.New(raw, wire.Config{
			Path: protocol.Gateway_Session_FullMethodName, Authority: "a",
			ReadAhead: 4096, Go: work.Go,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(wire.ErrClosed)
		test(t, &bridge{conn, server})
	})
}

func (b *bridge) open(t *testing.T) (*wire.Stream, *side) {
	t.Helper()
	s := &side{}
	stream, err := b.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	return stream, s
}

func report(t *testing.T, sequence uint64, size int) []byte {
	t.Helper()
	m,
		err := proto.Marshal(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{
		Report: &protocol.Report{Sequence: sequence, Why: strings.Repeat("x", size)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// echo acknowledges every report, with as many bytes as it had.
func echo(s agentStream) error {
	for {
		m, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		r := m.GetReport()
		if err := s.Send(
			&protocol.GatewayMessage{
				Kind: &protocol.GatewayMessage_Nack{Nack: &protocol.Nack{Sequence: r.GetSequence(), Message: r.GetWhy()}},
			},
		); err != nil {
			return err
		}
	}
}

// Everything arrives, in order, through all windows of both sides.
func TestMuchIsSaid(t *testing.T) {
	across(t, echo, func(t *testing.T, b *bridge) {
		const streams, messages = 20, 100
		var all []*wire.Stream
		var sides []*side
		for range streams {
			s, side := b.open(t)
			all, sides = append(all, s), append(sides, side)
		}
		for n := range messages {
			for i, s := range all {
				send := s.Send
				if n == messages-1 {
					send = s.SendLast
				}
				if !send(report(t, uint64(n+1), 10+i*600)) {
					t.Fatalf("stream %d: message %d was not sent", i, n)
				}
			}
			synctest.Wait()
		}
		for i, s := range sides {
			if n, over, err := s.is(); n != messages || !over || err != nil {
				t.Errorf("stream %d: %d messages, over %v, %v", i, n, over, err)
			}
			for n, m := range s.messages {
				if m.GetNack().GetSequence() != uint64(n+1) || len(m.GetNack().GetMessage()) != 10+i*600 {
					t.Fatalf("stream %d: message %d is %d of %d bytes", i, n, m.GetNack().GetSequence(),
						len(m.GetNack().GetMessage()))
				}
			}
		}
		if b.Streams() != 0 {
			t.Errorf("%d streams are left", b.Streams())
		}
	})
}

// The connection's window is shared: what does not fit waits, in order, and goes out when the other
// end has taken the rest.
func TestMessagesWaitForTheConnectionsWindow(t *testing.T) {
	across(t, echo, func(t *testing.T, b *bridge) {
		var all []*wire.Stream
		var sides []*side
		for range 8 {
			s, side := b.open(t)
			all, sides = append(all, s), append(sides, side)
		}
		for n := range 4 { // 8 streams × 4 × 15,000 bytes at once, through a window of 64 KiB
			for i, s := range all {
				if !s.Send(report(t, uint64(n+1), 15_000)) {
					t.Fatalf("stream %d: message %d was not sent", i, n)
				}
			}
		}
		all[3].Cancel() // what waits of it goes with it
		for i, side := range sides {
			if n, _, _ := side.is(); i != 3 && n != 4 {
				t.Errorf("stream %d: %d messages", i, n)
			}
		}
	}, grpc.StaticConnWindowSize(64<<10), grpc.StaticStreamWindowSize(64<<10))
}

// A server that does not read gets no more than a window of data.
func TestWhoDoesNotReadIsSentNoMore(t *testing.T) {
	var read chan struct{} // of the bubble
	across(t, func(s agentStream) error {
		<-read
		return echo(s)
	}, func(t *testing.T, b *bridge) {
		read = make(chan struct{})
		s, side := b.open(t)
		sent := 0
		for s.Send(report(t, uint64(sent+1), 1000)) {
			synctest.Wait()
			if sent++; sent > 70 {
				t.Fatalf("%d KiB were sent to who does not read", sent)
			}
		}
		if sent < 60 {
			t.Errorf("%d KiB were sent, want a window full: 64", sent)
		}
		close(read)
		if n, _, _ := side.is(); n != sent || !s.Send(report(t, 1, 1000)) {
			t.Errorf("%d of %d messages arrived when they were read, or no more can be sent", n, sent)
		}
	}, grpc.StaticConnWindowSize(64<<10), grpc.StaticStreamWindowSize(64<<10))
}

// A stream's end has its reason, in gRPC's words.
func TestEnds(t *testing.T) {
	across(t, func(s agentStream) error {
		m, err := s.Recv()
		if err != nil {
			return err
		}
		switch m.GetReport().GetSequence() {
		case 1:
			return nil
		case 2:
			return status.Error(codes.PermissionDenied, "not 100 % yours: ü")
		}
		return errors.New("else")
	}, func(t *testing.T, b *bridge) {
		for n, want := range []string{"", "permissiondenied: not 100 % yours: ü", "unknown: else"} {
			s, side := b.open(t)
			s.Send(report(t, uint64(n+1), 1))
			_, over, err := side.is()
			if !over || err == nil && want != "" || err != nil && err.Error() != want {
				t.Errorf("over %v, %v: want %q", over, err, want)
			}
			if s.Send(report(t, 9, 1)) {
				t.Error("something was sent after the end")
			}
		}
	})
}

// A server that takes few streams is not asked for more, and one that stops serves those that there
// are.
func TestLimitsOfTheOtherEnd(t *testing.T) {
	across(t, echo, func(t *testing.T, b *bridge) {
		first, side := b.open(t)
		second, _ := b.open(t)
		if _, err := b.Open(side); err == nil || !strings.Contains(err.Error(), "(2)") {
			t.Errorf("a third of 2 streams: %v", err)
		}
		second.Cancel()
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			b.server.GracefulStop()
		}()
		synctest.Wait()
		if _, err := b.Open(side); !errors.Is(err, wire.ErrLeaving) || b.Ready() {
			t.Errorf("a stream on a connection that ends: %v", err)
		}
		if n, over, _ := side.is(); n != 0 || over {
			t.Errorf("a stream that was there: %d messages, over %v", n, over)
		}
		first.SendLast(report(t, 1, 1))
		if n, over, err := side.is(); n != 1 || !over || err != nil {
			t.Errorf("a stream that was there: %d messages, over %v, %v", n, over, err)
		}
		<-stopped
	}, grpc.MaxConcurrentStreams(2))
}

// A connection whose other end is gone is noticed; one that is idle is not closed.
func TestSilence(t *testing.T) {
	across(t, echo, func(t *testing.T, b *bridge) {
		_, side := b.open(t)
		tend := func(seconds int) {
			for range seconds {
				<-time.After(time.Second)
				b.Tend(time.Now(), 10*time.Second, 5*time.Second)
			}
		}
		tend(300)
		if _, over, err := side.is(); over {
			t.Fatalf("an idle connection was closed: %v", err)
		}
		b.Freeze()
		tend(300)
		if _, over, err := side.is(); over {
			t.Fatalf("a frozen connection knows that it was closed: %v", err)
		}
		b.Thaw()
		if _, over, err := side.is(); over {
			t.Fatalf("a connection that was frozen was closed: %v", err)
		}
	}, grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
		MinTime:             5 * time.Second,
		PermitWithoutStream: true,
	}))
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		var work sync.WaitGroup
		defer work.Wait()
		work.Go(func() {
			buffer := make([]byte, 4096)
			_, _ = theirs.Read(buffer)
			_, _ = theirs.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}) // settings, and then nothing any more
			for {
				if _, err := theirs.Read(buffer); err != nil {
					return
				}
			}
		})
		c, err := wire.New(ours, wire.Config{Path: "/a/b", Authority: "a", Go: work.Go})
		if err != nil {
			t.Fatal(err)
		}
		s := &side{}
		if _, err := c.Open(s); err != nil {
			t.Fatal(err)
		}
		for range 16 {
			<-time.After(time.Second)
			c.Tend(time.Now(), 10*time.Second, 5*time.Second)
		}
		if _, over, err := s.is(); !over || !errors.Is(err, wire.ErrSilent) {
			t.Errorf("over %v, %v: want it to be found silent", over, err)
		}
		if _, err := c.Open(s); !errors.Is(err, wire.ErrSilent) {
			t.Errorf("another stream: %v", err)
		}
	})
}

// A peer that is no server is detected in time.
func TestNoGreeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		context.AfterFunc(ctx, func() { ours.Close() })
		go func() {
			_, _ = theirs.Read(make([]byte, 4096))
			_, _ = theirs.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
		}()
		if _, err := wire.New(ours, wire.Config{Go: func(f func()) { t.Error("something was started") }}); err == nil {
			t.Error("a server of another protocol was taken for one")
		}
	})
}
