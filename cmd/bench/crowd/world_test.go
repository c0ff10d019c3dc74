package crowd_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold/leasehold/cmd/bench/crowd"
	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

const shardID = "shard1"

// world is a shard in a synctest bubble whose machines' agents are a crowd's.
type world struct {
	t        *testing.T
	db       *memstore.Database
	store    *memstore.Store
	keys     store.Keys
	provider *fake.Provider
	pki      *pki.Authority // nil: streams are not secured
	crowd    *crowd.Crowd
	net      *network
}

// network is TCP in memory.
type network struct {
	mu    sync.Mutex
	ports map[string]*bufconn.Listener
	conns map[string][]net.Conn
}

func (n *network) listen(_ context.Context, address string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := bufconn.Listen(64 << 10)
	n.ports[address] = l
	return l, nil
}

func (n *network) dial(ctx context.Context, _ netip.Addr, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.ports[address]
	n.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("dial %s: nobody listens", address)
	}
	conn, err := l.DialContext(ctx)
	if err == nil {
		n.mu.Lock()
		n.conns[address] = append(n.conns[address], conn)
		n.mu.Unlock()
	}
	return conn, err
}

// kill ends a process, as far as the network can tell.
func (n *network) kill(address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ports[address].Close()
	delete(n.ports, address)
	for _, c := range n.conns[address] {
		c.Close()
	}
}

// cut ends all connections to a process, which goes on.
func (n *network) cut(address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns[address] {
		c.Close()
	}
	n.conns[address] = nil
}

// replica is one coordinator.
type replica struct {
	store *memstore.Store
	end   func()
}

// inWorld runs a test with a crowd whose agents are on machines of the provider. Agents have
// connections of their own if that is asked for.
func inWorld(t *testing.T, secured bool, config crowd.Config, test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, db: memstore.New(memstore.Config{}), keys: store.KeysOf("test"),
			net: &network{ports: map[string]*bufconn.Listener{}, conns: map[string][]net.Conn{}},
		}
		defer w.db.Close()
		w.store = w.db.Connect()
		w.put(w.keys.Shard(), store.Encode(store.Shard{
			Schema: store.Schema, ID: shardID, Name: "test", Created: time.Now().UTC(),
			Settings: store.DefaultShardSettings(),
		}))
		if secured {
			dir := t.TempDir()
			if err := pki.Init(dir,
				map[pki.Kind]time.Duration{pki.Agents: 365 * 24 * time.Hour}); err != nil {
				t.Fatal(err)
			}
			var err error
			if w.pki, err = pki.Open(dir, slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			config.Authority = dir
		}
		config.ShardID, config.Coordinators = shardID, []string{"a", "b"}
		var err error
		if w.crowd, err = crowd.New(config, crowd.Deps{Dial: w.net.dial}); err != nil {
			t.Fatal(err)
		}
		w.provider = fake.NewProvider(fake.Config{Boot: time.Second}, fake.Inside{Run: w.runMachine})
		ctx, end := context.WithCancel(context.Background())
		var living sync.WaitGroup
		living.Go(func() { _ = w.crowd.Run(ctx) })
		defer living.Wait()
		defer end()
		defer w.provider.Close()
		test(w)
	})
}

func (w *world) runMachine(ctx context.Context, boot fake.Boot) {
	id := []string{boot.Bootstrap.Instance}
	if err := w.crowd.Add(id); err != nil {
		w.t.Error(err)
	}
	<-ctx.Done()
	if err := w.crowd.Remove(id); err != nil {
		w.t.Error(err)
	}
}

// start starts a replica that lasts until the test ends.
func (w *world) start(id string) *replica {
	w.t.Helper()
	r := &replica{store: w.db.Connect()}
	deps := coordinator.Deps{
		Store: r.store, Providers: map[string]provider.Provider{"mem": w.provider},
		Logger: slog.New(slog.DiscardHandler), Listen: w.net.listen,
	}
	if w.pki != nil {
		deps.Authority = w.pki
	}
	c, err := coordinator.New(coordinator.Config{
		Shard: "test", ID: id, Listen: id, Advertise: id, Version: "test", StreamsPerConnection: 1000,
	}, deps)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := c.Run(ctx); err != nil {
			w.t.Errorf("replica %s: %v", id, err)
		}
	}()
	r.end = cancel
	w.t.Cleanup(func() {
		cancel()
		<-done
	})
	return r
}

func (w *world) put(key string, value []byte) {
	w.t.Helper()
	if _, err := w.store.Commit(w.t.Context(), store.Txn{Writes: []store.Write{store.Put(key, value)}}); err != nil {
		w.t.Fatal(err)
	}
}

// apply wants a group of so many instances.
func (w *world) apply(size int) {
	w.t.Helper()
	g := store.DefaultGroup()
	g.Name, g.Size, g.Provider = "web", size, "mem"
	g.Complete()
	w.put(w.keys.Group(g.Name), store.Encode(g))
}

func (w *world) instances() map[string]store.Instance {
	w.t.Helper()
	l, err := w.store.List(w.t.Context(), w.keys.Of(store.KindInstances), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]store.Instance{}
	for _, kv := range l.KVs {
		v, err := store.Decode[store.Instance](kv)
		if err != nil {
			w.t.Fatal(err)
		}
		out[v.Record.ID] = v.Record
	}
	return out
}

// up waits until so many instances run and the crowd has their agents registered, and returns one
// of them.
func (w *world) up(size int) (some string) {
	w.t.Helper()
	w.until(5*time.Minute, "all instances run", func() bool {
		running := 0
		for id, in := range w.instances() {
			if in.Phase == store.Running {
				running++
				some = id
			}
		}
		s := w.crowd.Stats()
		return running == size && s.Registered == size && s.Acks >= uint64(size)
	})
	return some
}

// pass lets time go by.
func (w *world) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// until waits until something is so, for at most a time, and returns how long that took.
func (w *world) until(most time.Duration, what string, is func() bool) time.Duration {
	w.t.Helper()
	began := time.Now()
	for synctest.Wait(); !is(); w.pass(100 * time.Millisecond) {
		if time.Since(began) >= most {
			w.t.Fatalf("after %s it is still not so that %s\n%+v", most, what, w.describe())
		}
	}
	return time.Since(began)
}

func (w *world) describe() string {
	s := w.crowd.Stats()
	out := fmt.Sprintf("agents %d, begun %d, registered %d, silent %d, served %v, reports %d, acks %d, nacks %d, streams %d, refused %v, troubles %v, connections %d\n",
		s.Agents, s.Begun, s.Registered, s.Silent, s.Served, s.Reports, s.Acks, s.Nacks, s.Streams, s.Refused,
		s.Troubles, s.Connections)
	for id, in := range w.instances() {
		out += id + " " + string(in.Phase) + ": " + in.Last.Why + "\n"
	}
	return out
}
