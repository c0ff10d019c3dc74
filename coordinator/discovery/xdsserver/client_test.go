package xdsserver_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/xds"

	"github.com/leasehold/leasehold/coordinator/access"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/discovery"
	"github.com/leasehold/leasehold/coordinator/discovery/xdsserver"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
	"github.com/leasehold/leasehold/tests/harness"
)

const longest = time.Minute // it is no measure of speed

var keys = store.KeysOf("main")

// shard is a shard in memory, and a replica that serves it by xDS.
type shard struct {
	t       testing.TB
	store   *memstore.Store // the test's own
	replica *memstore.Store
	server  *xdsserver.Server
}

func serve(t testing.TB, listen string, files access.Config) *shard {
	t.Helper()
	db := memstore.New(memstore.Config{})
	s := &shard{t: t, store: db.Connect(), replica: db.Connect()}
	c := cache.New(keys)
	directory := discovery.NewDirectory(c)
	var err error
	if s.server, err = xdsserver.New(xdsserver.Config{Listen: listen, Access: files}, directory,
		slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if err := s.server.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = c.Run(ctx, s.replica) })
	running.Go(func() { directory.Run(ctx) })
	running.Go(func() {
		if err := s.server.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
		db.Close()
	})
	return s
}

func (s *shard) commit(writes ...store.Write) {
	s.t.Helper()
	if _, err := s.store.Commit(s.t.Context(), store.Txn{Writes: writes}); err != nil {
		s.t.Fatal(err)
	}
}

// put writes a record of an instance.
func (s *shard) put(id, group, zone, address string, phase store.Phase) {
	s.t.Helper()
	s.commit(store.Put(keys.Instance(id), store.Encode(store.Instance{
		Schema: 1, ID: id, Group: group, Zone: zone, Address: address, Phase: phase,
	})))
}

// backend returns a gRPC server, and returns its address.
func backend(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	healthv1.RegisterHealthServer(g, health.NewServer())
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(l) })
	t.Cleanup(func() {
		g.Stop()
		serving.Wait()
	})
	return l.Addr().String()
}

// bootstrap returns the example of docs/discovery.md for gRPC, with the server's address.
func (s *shard) bootstrap() []byte {
	s.t.Helper()
	page, err := os.ReadFile("../../../docs/discovery.md")
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```json\n")
	text, _, _ := strings.Cut(rest, "```")
	if !found || !strings.Contains(text, "127.0.0.1:7422") {
		s.t.Fatalf("docs/discovery.md shows no bootstrap: %s", text)
	}
	return []byte(strings.ReplaceAll(text, "127.0.0.1:7422", s.server.Address()))
}

// dial connects to a group as grpc-go does by itself.
func (s *shard) dial(target string) *grpc.ClientConn {
	s.t.Helper()
	resolver, err := xds.NewXDSResolverWithConfigForTesting(s.bootstrap())
	if err != nil {
		s.t.Fatal(err)
	}
	conn, err := grpc.NewClient(target, grpc.WithResolvers(resolver),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn
}

// reached returns the addresses that answer some calls, in order; and the last error.
func reached(t testing.TB, conn *grpc.ClientConn) string {
	seen := map[string]bool{}
	for range 12 {
		ctx, cancel := context.WithTimeout(t.Context(), longest)
		var at peer.Peer
		_, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{}, grpc.Peer(&at))
		cancel()
		if err != nil {
			return err.Error()
		}
		seen[at.Addr.String()] = true
	}
	var all []string
	for address := range seen {
		all = append(all, address)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (s *shard) await(conn *grpc.ClientConn, addresses ...string) {
	s.t.Helper()
	slices.Sort(addresses)
	var is string
	harness.Await(s.t, "calls to reach "+strings.Join(addresses, " "), longest, 10*time.Millisecond, func() bool {
		is = reached(s.t, conn)
		return is == strings.Join(addresses, " ")
	}, func() string { return is })
}

// grpc-go's own xDS client finds the instances of a group, and follows its changes; what leaves
// leaves at once, and what is lost stays.
//
// proves LB-4, SAFE-18
func TestGRPCFindsTheInstances(t *testing.T) {
	t.Parallel()
	a, b, c := backend(t), backend(t), backend(t)
	s := serve(t, "127.0.0.1:0", access.Config{})
	s.commit(store.Put(keys.Status("web"), store.Encode(store.Status{Schema: 1, Group: "web", Records: new(0)})))
	s.put("web-0", "web", "zone-a", a, store.Running)
	s.put("web-1", "web", "zone-b", b, store.Running)
	s.put("web-2", "web", "zone-b", c, store.Checking)
	web := s.dial("xds:///web")
	s.await(web, a, b)
	s.put("web-2", "web", "zone-b", c, store.Running)
	s.await(web, a, b, c)
	s.put("web-1", "web", "zone-b", b, store.Draining)
	s.await(web, a, c)
	s.commit(store.Delete(keys.Instance("web-0"))) // damage
	s.put("web-1", "web", "zone-b", b, store.Running)
	s.await(web, a, b, c)

	s.replica.Faults().Cut()
	s.await(web, a, b, c)
	s.await(s.dial("xds:///web"), a, b, c) // so is a client that comes now told the last answer
	s.replica.Faults().Mend()
	s.put("web-1", "web", "zone-b", b, store.Deleting)
	s.await(web, a, c)

	// A port in the name is for all instances, and a group may come later.
	host, port, _ := strings.Cut(a, ":")
	bare := s.dial("xds:///bare:" + port)
	s.put("bare-0", "bare", "", host, store.Running)
	s.await(bare, a)
}

// proves LB-4, SAFE-18: while a record is lost that the replica has never read, a client of that
// group is sent to another replica, and clients of other groups are answered
func TestGRPCIsNotSentAPartOfAGroup(t *testing.T) {
	t.Parallel()
	a := backend(t)
	s := serve(t, "127.0.0.1:0", access.Config{})
	s.commit(store.Put(keys.Status("web"), store.Encode(store.Status{Schema: 1, Group: "web", Records: new(1)})))
	s.put("db-0", "db", "", a, store.Running)
	s.await(s.dial("xds:///db"), a)
	for _, names := range [][]string{{"web"}, {"db", "web:8080"}, {"*"}} {
		if err := s.server.Asks(names); status.Code(err) != codes.Unavailable {
			t.Errorf("%v: %v", names, err)
		}
	}
	s.put("web-0", "web", "", a, store.Running)
	s.await(s.dial("xds:///web"), a)
}

// proves LB-4: ports of groups that do not exist keep no client from the ports of a group that does
func TestPortsOfNoGroupMakeRoom(t *testing.T) {
	t.Parallel()
	a := backend(t)
	host, port, _ := strings.Cut(a, ":")
	s := serve(t, "127.0.0.1:0", access.Config{})
	s.put("web-0", "web", "", host, store.Running)
	s.await(s.dial("xds:///web:"+port), a)
	var many []string
	for i := range 5000 {
		many = append(many, fmt.Sprintf("ci-%d:80", i))
	}
	for range 2 {
		if err := s.server.Asks(many); err != nil {
			t.Fatal(err)
		}
	}
	s.put("db-0", "db", "", host, store.Running)
	s.await(s.dial("xds:///db"+":"+port), a)
}
