package gateway

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

// usualReport returns what an agent says that is well: two checks, the host with its windows, and
// its papers.
func usualReport() *protocol.Report {
	when := timestamppb.New(time.Unix(1_800_000_000, 123_456_789))
	r := &protocol.Report{
		Sent: when, MachineUptime: durationpb.New(345678 * time.Second), Healthy: true,
		ConfigHash: "c7e1f0a2b94d", Trust: "4be9a6f27c1d4be9a6f27c1d",
		Certificate: &protocol.OwnCertificate{Issuer: "9f86d081884c7d65", Ends: when},
		Host: &protocol.Host{
			CpuPercent: 12.5, MemoryPercent: 48.25, DiskPercent: 71, NetworkSent: 123456789,
			NetworkReceived: 987654321,
		},
	}
	for _, name := range []string{"http :8081/healthz", "process"} {
		r.Checks = append(r.Checks, &protocol.Check{
			Name: name, Kind: "http", Healthy: true, Since: when, Threshold: 2,
			Took: durationpb.New(1234567),
		})
	}
	for _, span := range []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute} {
		r.Host.Windows = append(r.Host.Windows, &protocol.HostWindow{
			Span: durationpb.New(span), Covered: durationpb.New(span), CpuPercent: 12.5, MemoryPercent: 48.25,
			DiskPercent: 71,
			NetworkSent: 1234567, NetworkReceived: 7654321,
		})
	}
	return r
}

// numbered is a message with a report or heartbeat whose number can be changed in place: what comes
// last counts.
type numbered struct{ bytes []byte }

func newNumbered(b *testing.B, r *protocol.Report) *numbered {
	b.Helper()
	r = proto.CloneOf(r)
	r.Sequence = 0
	return numberedAs(b, 2, r)
}

// newBeat returns a heartbeat for the first report.
func newBeat(b *testing.B) *numbered {
	b.Helper()
	return numberedAs(b, 5, &protocol.Heartbeat{Report: 1, CpuPercent: 12.5, MemoryPercent: 48.25})
}

func numberedAs(b *testing.B, field protowire.Number, m proto.Message) *numbered {
	b.Helper()
	body, err := proto.Marshal(m)
	if err != nil {
		b.Fatal(err)
	}
	body = append(body, 1<<3, 0x80, 0x80, 0x80, 0x80, 0)
	return &numbered{protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), body)}
}

func (n *numbered) set(number uint64) []byte {
	at := n.bytes[len(n.bytes)-5:]
	for i := range at {
		at[i] = byte(number>>(7*i)) | 0x80
	}
	at[4] &^= 0x80
	return n.bytes
}

// rawCodec sends bytes, and only counts what arrives.
type rawCodec struct{ named interface{ Name() string } }

func (c rawCodec) Name() string { return c.named.Name() }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if data, ok := v.([]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(data)}, nil
	}
	data, err := proto.Marshal(v.(proto.Message))
	return mem.BufferSlice{mem.SliceBuffer(data)}, err
}

func (rawCodec) Unmarshal(mem.BufferSlice, any) error { return nil }

// bench is a gateway on a store that answers at once.
type bench struct {
	*Gateway
	store *quickStore
}

// quickStore renews without a thought, and counts.
type quickStore struct {
	store.Store
	commits, puts atomic.Int64
	takes         time.Duration // a commit
}

func (q *quickStore) Renew(_ context.Context, id store.LeaseID) (store.Lease, error) {
	return store.Lease{ID: id, TTL: 17 * time.Second, From: time.Now()}, nil
}

func (q *quickStore) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	q.commits.Add(1)
	q.puts.Add(int64(len(txn.Writes)))
	if q.takes > 0 {
		<-time.After(q.takes)
	}
	return q.Store.Commit(ctx, txn)
}

func openBench(b *testing.B, agents int) *bench {
	b.Helper()
	db := memstore.New(memstore.Config{})
	q := &quickStore{Store: db.Connect()}
	keys := store.KeysOf("test")
	put := func(key string, rec any) {
		if _, err := q.Store.Commit(b.Context(),
			store.Txn{Writes: []store.Write{store.Put(key, store.Encode(rec))}}); err != nil {
			b.Fatal(err)
		}
	}
	put(keys.Shard(), store.Shard{Schema: store.Schema, ID: "51a4d", Settings: store.DefaultShardSettings()})
	for i := range agents {
		put(keys.Instance(fmt.Sprintf("web-%d", i)), store.Instance{
			Schema: store.Schema, ID: fmt.Sprintf("web-%d", i), Group: "web", Phase: store.Running, Managed: true,
			Spec: store.InstanceSpec{
				Provider: "mem",
				Report: store.ReportSpec{
					Interval: store.Duration(10 * time.Second),
					LeaseTTL: store.Duration(32 * time.Second),
				},
			},
		})
	}
	seen := cache.New(keys)
	gw, err := New(Config{Replica: "one", ShardID: "51a4d", Keys: keys}, Deps{
		Store: q, Cache: seen, Logger: slog.New(slog.DiscardHandler), Disturbed: func(string) {},
		Journal: func(context.Context, store.JournalEntry) {},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { _ = seen.Run(ctx, q.Store) })
	if err := seen.WaitFor(ctx, 1); err != nil { // otherwise agents receive the list of replicas at random times
		b.Fatal(err)
	}
	parts.Go(func() { _ = gw.Run(ctx) })
	b.Cleanup(func() {
		cancel()
		parts.Wait()
		db.Close()
	})
	return &bench{gw, q}
}

// wire is a stream without a network.
type wire struct {
	grpc.ServerStream
	ctx     context.Context
	in      chan []byte
	said    chan struct{}
	encoder codec
}

func (w *wire) Context() context.Context     { return w.ctx }
func (w *wire) SetHeader(metadata.MD) error  { return nil }
func (w *wire) SendHeader(metadata.MD) error { return nil }
func (w *wire) RecvMsg(m any) error {
	data, open := <-w.in
	if !open {
		return io.EOF
	}
	return w.encoder.Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, m)
}
func (w *wire) Send(m *protocol.GatewayMessage) error { return w.SendMsg(m) }

func (w *wire) SendMsg(m any) error {
	data, err := w.encoder.Marshal(m)
	data.Free()
	if said, ok := m.(*protocol.GatewayMessage); !ok || said.GetCoordinators() == nil { // those come whenever they do
		w.said <- struct{}{}
	}
	return err
}

func (w *wire) Recv() (*protocol.AgentMessage, error) { panic("Recv is not used") }

func helloBytes(b *testing.B, id string) []byte {
	b.Helper()
	data, err := proto.Marshal(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Hello{Hello: &protocol.Hello{
		Protocol: 1, Shard: "51a4d", Instance: id, BootId: "boot", Epoch: 1, AgentVersion: "test",
	}}})
	if err != nil {
		b.Fatal(err)
	}
	return data
}

// talk opens a stream without a network and returns it once the agent has received everything that
// follows a welcome.
func (g *bench) talk(b *testing.B, id string) *wire {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &wire{ctx: withEnd(ctx), in: make(chan []byte, 1), said: make(chan struct{}, 100), encoder: newCodec()}
	var session sync.WaitGroup
	session.Go(func() { _ = g.Session(w) })
	b.Cleanup(func() {
		cancel()
		close(w.in)
		session.Wait()
	})
	w.in <- helloBytes(b, id)
	<-w.said // welcome
	<-w.said // wanted
	g.freely(id)
	return w
}

// BenchmarkReport is one report or heartbeat from its bytes to its acknowledgement: the store
// renews at once.
func BenchmarkReport(b *testing.B) {
	for _, kind := range []struct {
		name string
		make func() *numbered
	}{
		{"report", func() *numbered { return newNumbered(b, usualReport()) }},
		{"heartbeat", func() *numbered { return newBeat(b) }},
	} {
		first := newNumbered(b, usualReport())
		b.Run(kind.name+" decoded", func(b *testing.B) {
			message := kind.make()
			b.ReportAllocs()
			b.SetBytes(int64(len(message.bytes)))
			for i := uint64(1); b.Loop(); i++ {
				if _, err := decode(message.set(i)); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(kind.name+" without a network", func(b *testing.B) {
			g := openBench(b, 1)
			w, message := g.talk(b, "web-0"), kind.make()
			w.in <- first.set(1)
			<-w.said
			b.ReportAllocs()
			for i := uint64(2); b.Loop(); i++ {
				w.in <- message.set(i)
				<-w.said
			}
		})
		b.Run(kind.name+" over gRPC", func(b *testing.B) {
			g := openBench(b, 1)
			stream := g.dial(b, "web-0")
			message := kind.make()
			var answer protocol.GatewayMessage
			exchange := func(data []byte) {
				if err := stream.SendMsg(append([]byte(nil), data...)); err != nil { // gRPC keeps it for a while
					b.Fatal(err)
				}
				if err := stream.RecvMsg(&answer); err != nil {
					b.Fatal(err)
				}
			}
			exchange(first.set(1))
			b.ReportAllocs()
			for i := uint64(2); b.Loop(); i++ {
				exchange(message.set(i))
			}
		})
	}
}

// dial opens a stream on a port of its own.
func (g *bench) dial(b *testing.B, id string) grpc.ClientStream {
	b.Helper()
	l, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := grpc.NewServer(ServerOptions()...)
	protocol.RegisterGatewayServer(server, g)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{newCodec()})))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		conn.Close()
		server.Stop()
		serving.Wait()
	})
	stream, err := conn.NewStream(context.Background(), &protocol.Gateway_ServiceDesc.Streams[0],
		"/leasehold.agent.v1.Gateway/Session")
	if err != nil {
		b.Fatal(err)
	}
	if err := stream.SendMsg(helloBytes(b, id)); err != nil {
		b.Fatal(err)
	}
	for range 2 {
		if err := stream.RecvMsg(&protocol.GatewayMessage{}); err != nil {
			b.Fatal(err)
		}
	}
	g.freely(id)
	return stream
}

// freely lets an agent say as much as it can.
func (g *bench) freely(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.sessions[id]
	s.rate.Messages.SetLimit(rate.Inf)
	s.rate.Bytes.SetLimit(rate.Inf)
}

// BenchmarkNews is many agents each of whose reports says something new, while a commit takes a
// millisecond.
func BenchmarkNews(b *testing.B) {
	const agents = 256
	g := openBench(b, agents)
	g.store.takes = time.Millisecond
	well := usualReport()
	ill := proto.CloneOf(well)
	ill.Healthy, ill.Checks[0].Healthy = false, false
	wires := make([]*wire, agents)
	for i := range wires {
		wires[i] = g.talk(b, fmt.Sprintf("web-%d", i))
	}
	before, putsBefore := g.store.commits.Load(), g.store.puts.Load()
	b.ReportAllocs()
	b.ResetTimer()
	var all sync.WaitGroup
	for _, w := range wires {
		all.Go(func() {
			say := []*numbered{newNumbered(b, ill), newNumbered(b, well)}
			for n := range uint64(b.N / agents) {
				w.in <- say[n%2].set(n + 1)
				<-w.said
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N/agents*agents)/b.Elapsed().Seconds(), "reports/s")
	b.ReportMetric(float64(g.store.commits.Load()-before)/float64(max(1, g.store.puts.Load()-putsBefore)),
		"commits/put")
}
