package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

// receiver is the service of a collector, by OpenTelemetry's own protocol.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	mu  sync.Mutex
	got []*collector.ExportTraceServiceRequest
}

func (r *receiver) Export(_ context.Context, q *collector.ExportTraceServiceRequest,
) (*collector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, q)
	return &collector.ExportTraceServiceResponse{}, nil
}

// proves OBS-3
func TestSpansAreSentByOTLP(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r, server := &receiver{}, grpc.NewServer()
	collector.RegisterTraceServiceServer(server, r)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	defer serving.Wait()
	defer server.Stop()

	s, err := Open(t.Context(), "http://"+l.Addr().String(), About{Shard: "shop", Replica: "coord-a", Version: "1.2"},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	found := newHealings("5e4d")
	var spans []span
	for _, e := range []*store.JournalEntry{
		entryAt(1, "web-0-a", 0, fails(store.Dead, store.Deleting, "web-0-b")),
		entryAt(2, "web-0-b", 0, goes(store.Checking, store.Running)),
	} {
		spans = append(spans, found.follow(e)...)
	}
	for _, one := range spans {
		s.send(one)
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, q := range r.got {
		for _, of := range q.ResourceSpans {
			about := map[string]string{}
			for _, a := range of.Resource.Attributes {
				about[a.Key] = a.Value.GetStringValue()
			}
			if about["service.name"] != "leasehold" || about["service.instance.id"] != "coord-a" ||
				about["service.version"] != "1.2" || about[fieldShard] != "shop" {
				t.Errorf("it is from %v", about)
			}
			for _, scope := range of.ScopeSpans {
				for _, got := range scope.Spans {
					want := spans[n]
					n++
					if got.Name != want.name || string(got.TraceId) != string(want.trace[:]) ||
						string(got.SpanId) != string(want.id[:]) ||
						want.parent.IsValid() && string(got.ParentSpanId) != string(want.parent[:]) ||
						!want.parent.IsValid() && len(got.ParentSpanId) > 0 ||
						!time.Unix(0, int64(got.StartTimeUnixNano)).Equal(want.begin) ||
						!time.Unix(0, int64(got.EndTimeUnixNano)).Equal(want.end) {
						t.Errorf("%v came, want %+v", got, want)
					}
				}
			}
		}
	}
	if n != len(spans) || n != 4 {
		t.Errorf("%d spans came, want %d", n, len(spans))
	}
}

func TestEndpoints(t *testing.T) {
	for endpoint, ok := range map[string]bool{
		"https://collector:4317": true, "http://127.0.0.1:4317/": true, "collector:4317": false, "": false,
		"ftp://collector": false, "https://collector:4318/v1/traces": false,
	} {
		if err := CheckEndpoint(endpoint); (err == nil) != ok {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}

// slow is a collector that takes nothing until it is freed, and then all or nothing.
type slow struct {
	free  chan struct{}
	fails error
	taken int
}

func (s *slow) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	<-s.free
	if s.fails == nil {
		s.taken += len(spans)
	}
	return s.fails
}

func (*slow) Shutdown(context.Context) error { return nil }

// A queue that is full drops what comes, does not block, and is logged once when that begins and
// once with the number of dropped spans when it is over.
//
// proves OBS-3, OBS-1
func TestAFullQueueIsLoggedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		fails   error
		dropped int
		logged  []string
	}{
		"slow": {nil, 100, []string{"too slowly", "takes traces again"}},
		"gone": {errors.New("gone"), maxQueued + 100, []string{"too slowly", "does not take traces", "takes traces again"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines strings.Builder
				to := &slow{free: make(chan struct{}), fails: c.fails}
				s := NewSender(to, About{Shard: "shop", Replica: "one"}, slog.New(slog.NewTextHandler(&lines, nil)))
				defer s.Close()
				one := newHealings("5e4d").follow(entryAt(1, "a", 0, fails(store.Dead, store.Deleting, "b")))[0]
				for range maxQueued + 100 {
					s.send(one)
				}
				close(to.free)
				if err := s.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				to.fails = nil
				s.send(one)
				if err := s.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				got := strings.Split(strings.TrimSpace(lines.String()), "\n")
				if len(got) != len(c.logged) || !strings.HasSuffix(got[len(got)-1], fmt.Sprintf("dropped=%d", c.dropped)) {
					t.Fatalf("%d dropped are logged as\n%s", c.dropped, lines.String())
				}
				for i, want := range c.logged {
					if !strings.Contains(got[i], want) {
						t.Errorf("line %d is %q, want %q", i, got[i], want)
					}
				}
				if to.taken+c.dropped != maxQueued+101 {
					t.Errorf("%d were taken", to.taken)
				}
			})
		})
	}
}
