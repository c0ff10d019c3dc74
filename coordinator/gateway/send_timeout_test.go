package gateway_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/gateway"
	"github.com/leasehold/leasehold/coordinator/guard"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// serveGuarded serves a replica also behind a connection guard, on which all connections have one
// name. The caller calls stop before the replica's.
func (r *replica) serveGuarded(name string) (d *guard.Connections, stop func()) {
	r.w.t.Helper()
	d, err := guard.NewConnections(guard.DefaultBounds(1000), guard.Deps{Logger: r.w.log, Refused: r.Refusals().Add})
	if err != nil {
		r.w.t.Fatal(err)
	}
	creds := d.Credentials(insecure.NewCredentials(), func(credentials.AuthInfo) string { return name })
	server := grpc.NewServer(append(gateway.ServerOptions(), grpc.Creds(creds))...)
	protocol.RegisterGatewayServer(server, r.Gateway)
	inner, usual := bufconn.Listen(64<<10), r.listen
	var parts sync.WaitGroup
	parts.Go(func() { _ = server.Serve(d.Listener(inner)) })
	r.listen = inner
	return d, func() {
		r.listen = usual
		server.Stop()
		parts.Wait()
		synctest.Wait()
		if c := d.Counts(); c != (guard.Counts{}) {
			r.w.t.Errorf("the guard still counts %+v", c)
		}
	}
}

// An agent that reports and never reads is cut off, once nothing more can be said to it: nothing of
// it is left.
//
// proves SEC-5
func TestAnAgentThatDoesNotReadIsCutOff(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		w.record("web-1", store.Running)
		good := r.welcomed(hello("web-1", "boot1", 1))
		defer good.hangUp()
		d, stop := r.serveGuarded("web-0")
		defer stop()
		stream, hangUp := r.stream("web-0", func(c net.Conn) net.Conn { return c },
			grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(64<<10))
		defer hangUp()
		sent := uint64(0)
		for stream.Context().Err() == nil && sent < 100_000 {
			for range 10 {
				sent++
				if stream.Send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: &protocol.Report{
					Sequence: sent,
					Healthy:  true,
				}}}) != nil {
					break
				}
			}
			pass(time.Second)
			if sent%50 == 0 {
				came := time.Now()
				good.reports()
				if took := time.Since(came); took > 0 {
					t.Errorf("another waits %s for an acknowledgement", took)
				}
			}
			if d.Counts().Total == 0 {
				break
			}
		}
		if d.Counts().Total != 0 {
			t.Fatalf("after %d reports without reading an answer it is still there", sent)
		}
		entries := r.entriesOf("SEC-5")
		if len(entries) != 1 || entries[0].Instance != "web-0" ||
			entries[0].Why != "it does not read its messages" ||
			!slices.Contains(reason.Lines(entries[0].Facts), "its certificate names web-0") || entries[0].Claimed {
			t.Errorf("the journal has %+v", entries)
		}
		if a := w.alive("web-0"); a.Present() && a.Record.State != store.StreamLost {
			t.Errorf("alive is %+v", a.Record)
		}
		good.reports()
	})
}

// trickling is a connection that gets slow.
type trickling struct {
	net.Conn
	slow *atomic.Bool
}

func (c trickling) Write(p []byte) (int, error) {
	if !c.slow.Load() {
		return c.Conn.Write(p)
	}
	for i := range p {
		<-time.After(time.Second)
		if _, err := c.Conn.Write(p[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

// An agent whose report arrives in tiny pieces is late like a silent one, and is treated like it.
//
// proves SEC-5, DET-3, DET-6
func TestAnAgentThatTricklesIsSilent(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		w.record("web-1", store.Running)
		good := r.welcomed(hello("web-1", "boot1", 1))
		defer good.hangUp()
		var slow atomic.Bool
		stream, hangUp := r.stream("web-0", func(c net.Conn) net.Conn { return trickling{c, &slow} })
		defer hangUp()
		pass(time.Second)
		w.shows("web-0", "one", 1, store.StreamOpen)
		slow.Store(true)
		if err := stream.Send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: &protocol.Report{
			Sequence: 1,
			Why:      strings.Repeat("x", 3000),
		}}}); err != nil {
			t.Fatal(err)
		}
		pass(interval + interval/2)
		w.shows("web-0", "one", 1, store.StreamOverdue)
		good.reports()
		pass(interval)
		good.reports()
		pass(interval - 2*time.Second) // 16s and a half: the lease has half a second yet
		w.shows("web-0", "one", 1, store.StreamLost)
		good.reports()
	})
}

// stream returns an agent's that has said hello, over a connection of the test's making.
func (r *replica) stream(instance string, over func(net.Conn) net.Conn,
	options ...grpc.DialOption,
) (stream protocol.Gateway_SessionClient, hangUp func()) {
	r.w.t.Helper()
	options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			c, err := r.listen.DialContext(ctx)
			if err != nil {
				return nil, err
			}
			return over(c), nil
		}))
	conn, err := grpc.NewClient("passthrough:///replica", options...)
	if err != nil {
		r.w.t.Fatal(err)
	}
	if stream, err = protocol.NewGatewayClient(conn).Session(context.Background()); err == nil {
		err = stream.Send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Hello{Hello: hello(instance, "boot1",
			1)}})
	}
	if err != nil {
		r.w.t.Fatal(err)
	}
	return stream, func() { _ = conn.Close() }
}
