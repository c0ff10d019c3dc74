package attack

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/tests/stage"
)

// rogue is an agent with a certificate of its own that misbehaves.
type rogue struct {
	*attacker
	instance string
	pair     *tls.Certificate
	epoch    uint64
}

// rogues join with the bootstrap documents of machines of a group of their own, which is not
// healed.
func (s *siege) rogues(t *testing.T, group string, size int) []*rogue {
	t.Helper()
	var out []*rogue
	for _, id := range s.silent(t, group, size, "registration_timeout: 1h", "heal: {policy: none}") {
		e, key := s.attacker(), newKey(t)
		c, err := s.join(t, e.connect(t, e.with(nil)), id, s.token(t, id), requestOf(t, key))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, &rogue{
			attacker: e, instance: id,
			pair: &tls.Certificate{Certificate: c.GetChain(), PrivateKey: key},
		})
	}
	return out
}

// open opens a session.
func (r *rogue) open(t *testing.T, conn *grpc.ClientConn) (protocol.Gateway_SessionClient, error) {
	t.Helper()
	r.epoch++
	h := r.s.helloOf(r.instance)
	h.Epoch = r.epoch
	return r.hello(t, conn, h)
}

// opened opens a session that is welcomed.
func (r *rogue) opened(t *testing.T) protocol.Gateway_SessionClient {
	t.Helper()
	stream, err := r.open(t, r.connect(t, r.with(r.pair)))
	if err != nil {
		t.Fatalf("%s is not welcome yet: %v", r.instance, err)
	}
	return stream
}

func reportOf(sequence uint64) *protocol.Report {
	return &protocol.Report{Sequence: sequence, Healthy: true}
}

func say(stream protocol.Gateway_SessionClient, r *protocol.Report) error {
	return stream.Send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: r}})
}

// ended waits until a stream has ended, and returns the reason. A reason in a message counts as
// well as the status of the stream.
func ended(t *testing.T, stream protocol.Gateway_SessionClient) string {
	t.Helper()
	over := make(chan string, 1)
	go func() {
		told := ""
		for {
			m, err := stream.Recv()
			if r := m.GetRefused(); r != nil {
				told = r.GetReason().String() + ": " + r.GetMessage()
			}
			if err != nil {
				over <- strings.Trim(told+"; "+err.Error(), "; ")
				return
			}
		}
	}()
	select {
	case how := <-over:
		return how
	case <-time.After(stage.Longest):
		t.Fatal("the stream goes on")
		return ""
	}
}

// excesses are messages of agents and strangers that are too large, too many, or invalid.
func excesses(t *testing.T, s *siege) {
	tries := []struct {
		name string
		do   func(t *testing.T, stream protocol.Gateway_SessionClient)
	}{
		{"a message of a megabyte", func(t *testing.T, stream protocol.Gateway_SessionClient) {
			r := reportOf(1)
			r.Why = strings.Repeat("x", 1<<20)
			t.Log(say(stream, r))
		}},
		{"a hundred thousand checks", func(t *testing.T, stream protocol.Gateway_SessionClient) {
			r := reportOf(1)
			for range 100_000 {
				r.Checks = append(r.Checks, &protocol.Check{})
			}
			t.Log(say(stream, r))
		}},
		{"names without end", func(t *testing.T, stream protocol.Gateway_SessionClient) {
			r := reportOf(1)
			for range 10 {
				r.Checks = append(r.Checks, &protocol.Check{
					Name: strings.Repeat("../", 5000),
					Why:  strings.Repeat("\x00", 5000),
				})
			}
			t.Log(say(stream, r))
		}},
		{"hello again and again", func(t *testing.T, stream protocol.Gateway_SessionClient) {
			for range 1000 {
				if stream.Send(
					&protocol.AgentMessage{Kind: &protocol.AgentMessage_Hello{Hello: s.helloOf(s.Instances("web")[0])}},
				) != nil {
					return
				}
			}
		}},
	}
	rogues := s.rogues(t, "rogue", len(tries)+1)
	for i, try := range tries {
		s.within(t, try.name, func(t *testing.T) {
			before, r := s.Mark(), rogues[i]
			stream := r.opened(t)
			try.do(t, stream)
			t.Log(ended(t, stream))
			entry := s.recorded(t, before, "SEC-5", r.instance)
			t.Logf("%s: %s %v", entry.What, entry.Why, entry.Evidence)
		})
	}
	s.within(t, "words that are no message", func(t *testing.T) { garbage(t, s, rogues[len(tries)]) })
	s.within(t, "a stream without a hello", func(t *testing.T) {
		before, e := s.Mark(), s.attacker()
		conn := e.connect(t, e.with(s.stolenAuthority(t).forge(t, s.agent(s.Instances("web")[0]))))
		ctx, cancel := context.WithTimeout(t.Context(), stage.Longest)
		defer cancel()
		stream, err := protocol.NewGatewayClient(conn).Session(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Fatalf("the stream goes on without a hello: %v", err)
		} else {
			t.Log(err)
		}
		s.recorded(t, before, "SEC-5", "no hello", e.from)
	})
	s.remove("rogue")
}

// garbage completes TLS and then sends bytes that are not gRPC.
func garbage(t *testing.T, s *siege, r *rogue) {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	noise := make([]byte, 64<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	settings, ping := []byte{0, 0, 0, 4, 0, 0, 0, 0, 0}, []byte{0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}
	for _, try := range []struct {
		name string
		said []byte
	}{
		{"noise", noise},
		{"HTTP/1.1", []byte("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")},
		{"a preface and noise", slices.Concat([]byte(preface), noise)},
		{"a preface and a frame of 16 MiB", slices.Concat([]byte(preface), []byte{0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1})},
		{"a preface and pings", slices.Concat([]byte(preface), settings, bytes.Repeat(ping, 10_000))},
	} {
		s.within(t, try.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), stage.Longest)
			defer cancel()
			raw, err := r.dial(ctx, r.to)
			if err != nil {
				t.Fatal(err)
			}
			conn := tls.Client(raw, &tls.Config{
				MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{*r.pair},
				InsecureSkipVerify: true, //nolint:gosec // an attacker trusts every server
			})
			defer conn.Close()
			_, err = conn.Write(try.said)
			t.Log(err)
			if err := conn.SetReadDeadline(time.Now().Add(stage.Longest)); err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(io.Discard, conn)
			t.Logf("%d bytes of answer, then %v", n, err)
			if ne := interface{ Timeout() bool }(nil); errors.As(err, &ne) && ne.Timeout() {
				t.Error("the connection goes on")
			}
		})
	}
}
