package gateway_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/gateway"
	"github.com/leasehold/leasehold/coordinator/guard"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

// hub is a gateway behind its connection guard, on a real port, with certificates.
type hub struct {
	b       *testing.B
	address string
	dir     string // of the authority
	ca      *pki.Authority
	guard   *guard.Connections
	store   store.Store
	keys    store.Keys
}

// openHub opens one at which agents show certificates, as they do where it topics.
func openHub(b *testing.B) *hub { return openHubWith(b, true) }

// openHubWith opens one whose streams are secured, or not: then a connection may have any number of
// them.
func openHubWith(b *testing.B, secured bool) *hub {
	b.Helper()
	dir := b.TempDir()
	if err := pki.Init(dir, map[pki.Kind]time.Duration{pki.Agents: time.Hour}); err != nil {
		b.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	ca, err := pki.Open(dir, log)
	if err != nil {
		b.Fatal(err)
	}
	db := memstore.New(memstore.Config{})
	h := &hub{b: b, dir: dir, ca: ca, store: db.Connect(), keys: store.KeysOf("test")}
	h.put(h.keys.Shard(), store.Shard{Schema: store.Schema, ID: shardID, Settings: store.DefaultShardSettings()})
	seen := cache.New(h.keys)
	deps := gateway.Deps{
		Store: h.store, Cache: seen, Logger: log, Disturbed: func(string) {},
		Journal: func(context.Context, store.JournalEntry) {},
		Record: func(ctx context.Context, txn store.Txn, _ store.JournalEntry) (store.Revision, error) {
			return h.store.Commit(ctx, txn)
		},
	}
	if secured {
		deps.Authority = ca
	}
	gw, err := gateway.New(gateway.Config{Replica: "one", ShardID: shardID, Keys: h.keys}, deps)
	if err != nil {
		b.Fatal(err)
	}
	descriptors, err := guard.Descriptors()
	if err != nil {
		b.Fatal(err)
	}
	// the callers are here as well
	if h.guard, err = guard.NewConnections(guard.DefaultBounds(descriptors/2),
		guard.Deps{Logger: log, Refused: gw.Refusals().Add}); err != nil {
		b.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	h.address = l.Addr().String()
	options := append(gateway.ServerOptions(), grpc.MaxConcurrentStreams(1<<20))
	if secured {
		options = append(gateway.SecuredOptions(),
			grpc.Creds(h.guard.Credentials(gw.Credentials(), func(i credentials.AuthInfo) string {
				return i.(*gateway.Peer).Identity.Name
			})))
		l = h.guard.Listener(l)
	}
	server := grpc.NewServer(options...)
	protocol.RegisterGatewayServer(server, gw)
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { _ = seen.Run(ctx, h.store) })
	parts.Go(func() { _ = gw.Run(ctx) })
	parts.Go(func() { _ = server.Serve(l) })
	b.Cleanup(func() {
		cancel()
		server.Stop()
		parts.Wait()
		db.Close()
	})
	return h
}

func (h *hub) put(key string, rec any) {
	if _, err := h.store.Commit(context.Background(),
		store.Txn{Writes: []store.Write{store.Put(key, store.Encode(rec))}}); err != nil {
		h.b.Fatal(err)
	}
}

// record makes an instance's record.
func (h *hub) record(id string) {
	h.put(h.keys.Instance(id), store.Instance{
		Schema: store.Schema, ID: id, Group: "web", Phase: store.Running, Managed: true,
		Spec: store.InstanceSpec{
			Provider: "mem",
			Report:   store.ReportSpec{Interval: store.Duration(interval), LeaseTTL: store.Duration(leaseTTL)},
		},
	})
}

// papers returns an instance's TLS.
func (h *hub) papers(id string) *tls.Config {
	h.record(id)
	own, err := papersOf(h.ca, id)
	if err != nil {
		h.b.Fatal(err)
	}
	return identity.ClientConfig(shardID, own, h.ca.Trust())
}

// papersOf returns a certificate for an instance's agent.
func papersOf(ca *pki.Authority, id string) (*tls.Certificate, error) {
	key, err := identity.NewKey()
	if err != nil {
		return nil, err
	}
	request, err := identity.NewRequest(key)
	if err != nil {
		return nil, err
	}
	chain, _, err := ca.Issue(request, identity.Identity{Shard: shardID, Role: identity.Agent, Name: id}, time.Hour)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: chain, PrivateKey: key}, nil
}

func (h *hub) stream(ctx context.Context, id string, config *tls.Config) (*grpc.ClientConn,
	grpc.BidiStreamingClient[protocol.AgentMessage, protocol.GatewayMessage], error,
) {
	conn, err := grpc.NewClient("passthrough:///"+h.address, grpc.WithTransportCredentials(credentials.NewTLS(config)),
		grpc.WithAuthority(identity.Host(shardID, identity.Coordinator)))
	if err != nil {
		return nil, nil, err
	}
	stream, err := protocol.NewGatewayClient(conn).Session(ctx)
	if err == nil {
		err = stream.Send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Hello{Hello: hello(id, "boot",
			uint64(time.Now().UnixNano()))}})
	}
	return conn, stream, err
}

// acknowledged has 100 honest agents report once a second for a while, and says how long an
// acknowledgement takes.
func (h *hub) acknowledged(agents []*honest, during time.Duration) (p50, p99, most time.Duration, missed int) {
	var mu sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	until := time.Now().Add(during)
	for i, a := range agents {
		all.Go(func() {
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			<-time.After(time.Duration(i) * time.Second / time.Duration(len(agents)))
			for time.Now().Before(until) {
				d, ok := a.report()
				mu.Lock()
				if ok {
					took = append(took, d)
				} else {
					missed++
				}
				mu.Unlock()
				<-tick.C
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	if len(took) == 0 {
		return 0, 0, 0, missed
	}
	return took[len(took)/2], took[len(took)*99/100], took[len(took)-1], missed
}

type honest struct {
	stream grpc.BidiStreamingClient[protocol.AgentMessage, protocol.GatewayMessage]
	number uint64
}

func (a *honest) report() (time.Duration, bool) {
	a.number++
	began := time.Now()
	if a.stream.Send(
		&protocol.AgentMessage{
			Kind: &protocol.AgentMessage_Report{Report: &protocol.Report{Sequence: a.number, Healthy: true}},
		},
	) != nil {
		return 0, false
	}
	for {
		m, err := a.stream.Recv()
		if err != nil {
			return 0, false
		}
		if m.GetAck().GetSequence() == a.number {
			return time.Since(began), true
		}
	}
}

// BenchmarkAcknowledgementsUnderAttack measures how long honest agents wait for acknowledgements
// while others misbehave. The attackers run on the same machine.
func BenchmarkAcknowledgementsUnderAttack(b *testing.B) {
	h := openHub(b)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var agents []*honest
	for i := range 100 {
		id := fmt.Sprintf("good-%d", i)
		conn, stream, err := h.stream(ctx, id, h.papers(id))
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		agents = append(agents, &honest{stream: stream})
	}
	const during = 8 * time.Second
	measure := func(name string) {
		p50, p99, most, missed := h.acknowledged(agents, during)
		b.Logf("%-36s p50 %-9s p99 %-9s most %-9s missed %d  connections %+v", name, p50.Round(10*time.Microsecond),
			p99.Round(10*time.Microsecond), most.Round(10*time.Microsecond), missed, h.guard.Counts())
	}
	measure("quiet")

	var open []net.Conn
	for range 6000 {
		if c, err := net.Dial("tcp", h.address); err == nil {
			open = append(open, c)
		}
	}
	again, stop := context.WithCancel(ctx)
	var strangers sync.WaitGroup
	strangers.Go(func() {
		for again.Err() == nil {
			for i := range open {
				if again.Err() != nil {
					return
				}
				open[i].Close()
				if c, err := net.Dial("tcp", h.address); err == nil {
					open[i] = c
				}
				<-time.After(100 * time.Microsecond)
			}
		}
	})
	measure("6,000 half-open, ever new")
	stop()
	strangers.Wait()
	for _, c := range open {
		c.Close()
	}

	flood, stopFlood := context.WithCancel(ctx)
	var handshakes atomic.Int64
	config := identity.ClientConfig(shardID, nil, h.ca.Trust())
	var flooders sync.WaitGroup
	for range 64 {
		flooders.Go(func() {
			for flood.Err() == nil {
				d := tls.Dialer{Config: config, NetDialer: &net.Dialer{Timeout: 5 * time.Second}}
				if c, err := d.DialContext(flood, "tcp", h.address); err == nil {
					handshakes.Add(1)
					c.Close()
				}
			}
		})
	}
	measure("64 that connect without end")
	stopFlood()
	flooders.Wait()
	b.Logf("  %d handshakes a second", handshakes.Load()/int64(during/time.Second))

	bad, stopBad := context.WithCancel(ctx)
	var baddies sync.WaitGroup
	for i := range 20 {
		id := fmt.Sprintf("bad-%d", i)
		papers := h.papers(id)
		large := &protocol.Report{WorkloadExit: &protocol.WorkloadExit{Output: make([]byte, 200<<10)}}
		baddies.Go(func() {
			for bad.Err() == nil {
				conn, stream, err := h.stream(bad, id, papers)
				for n := uint64(1); err == nil; n++ {
					large.Sequence = n
					err = stream.Send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: large}})
				}
				if conn != nil {
					conn.Close()
				}
			}
		})
	}
	measure("20 agents that send all they can")
	stopBad()
	baddies.Wait()
	for b.Loop() {
	}
}
