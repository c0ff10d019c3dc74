package crowd_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/crowd"
	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

// addresses tells from where connections came.
type addresses struct {
	net.Listener
	mu   sync.Mutex
	from map[string]bool
}

func (a *addresses) Accept() (net.Conn, error) {
	c, err := a.Listener.Accept()
	if err == nil {
		host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		a.mu.Lock()
		a.from[host] = true
		a.mu.Unlock()
	}
	return c, err
}

// Over real TCP and TLS, agents come from many addresses of this machine.
func TestAgentsComeFromManyAddresses(t *testing.T) {
	dir := t.TempDir()
	if err := pki.Init(dir, map[pki.Kind]time.Duration{pki.Agents: time.Hour}); err != nil {
		t.Fatal(err)
	}
	pki, err := pki.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	db := memstore.New(memstore.Config{})
	defer db.Close()
	machines := fake.NewProvider(fake.Config{}, fake.Inside{})
	defer machines.Close()
	keys, records := store.KeysOf("test"), db.Connect()
	g := store.DefaultGroup()
	g.Name, g.Size, g.Provider = "web", 8, "mem"
	g.Complete()
	if _, err := records.Commit(t.Context(), store.Txn{Writes: []store.Write{
		store.Put(keys.Shard(), store.Encode(store.Shard{
			Schema: store.Schema, ID: shardID, Name: "test",
			Created: time.Now().UTC(), Settings: store.DefaultShardSettings(),
		})),
		store.Put(keys.Group(g.Name), store.Encode(g)),
	}}); err != nil {
		t.Fatal(err)
	}
	seen := &addresses{from: map[string]bool{}}
	serving := make(chan string, 1)
	r, err := coordinator.New(coordinator.Config{Shard: "test", ID: "a", Listen: "127.0.0.1:0", Version: "test"},
		coordinator.Deps{
			Store: records, Providers: map[string]provider.Provider{"mem": machines},
			Logger:    slog.New(slog.DiscardHandler),
			Authority: pki,
			Listen: func(ctx context.Context, address string) (_ net.Listener, err error) {
				seen.Listener, err = new(net.ListenConfig).Listen(ctx, "tcp", address)
				return seen, err
			},
			Ready: func(address string) { serving <- address },
		})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel()
	parts.Go(func() {
		if err := r.Run(ctx); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	c, err := crowd.New(crowd.Config{ShardID: shardID, Coordinators: []string{<-serving}, Authority: dir}, crowd.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	parts.Go(func() { _ = c.Run(ctx) })
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	known := map[string]bool{}
	for s := c.Stats(); s.Acks < 8 || s.Registered < 8; s = c.Stats() {
		select {
		case <-ctx.Done():
			t.Fatalf("not all agents were served in time: %+v", s)
		case <-look.C:
		}
		l, err := records.List(ctx, keys.Of(store.KindInstances), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range l.KVs {
			v, err := store.Decode[store.Instance](kv)
			if err != nil {
				t.Fatal(err)
			}
			if id := v.Record.ID; !known[id] && v.Record.Phase != store.Pending {
				known[id] = true
				if err := c.Add([]string{id}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	for from := range seen.from {
		if !strings.HasPrefix(from, "127.") {
			t.Errorf("an agent comes from %s", from)
		}
	}
	if len(seen.from) < 5 {
		t.Errorf("8 agents come from %d addresses: %v", len(seen.from), seen.from)
	}
}
