package cli

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
	"google.golang.org/grpc/test/bufconn"
)

// shard is a world with a real coordinator and machines in virtual time. Its agents write into etcd
// what a gateway would.
type shard struct {
	*world
	provider *fake.Provider

	mu   sync.Mutex
	sick func(id string) string // why an instance is not healthy; "" if it is
}

// inShard runs a test in a shard with a group, once all its instances run and the grace of the
// leader's beginning is over.
func inShard(t *testing.T, g store.Group, test func(*shard)) {
	t.Helper()
	inEmptyShard(t, fake.Config{}, func(w *shard) {
		g.Provider = "mem"
		w.put(store.KindGroups, g.Name, g)
		w.until("all instances run", func() bool { return w.status(g.Name).Healthy == g.Size })
		w.pass(2 * time.Minute)
		test(w)
	})
}

func inEmptyShard(t *testing.T, c fake.Config, test func(*shard)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &shard{world: newWorld(t), sick: func(string) string { return "" }}
		w.now = time.Now
		call := fake.Exactly(300 * time.Millisecond)
		c.Boot, c.Call, c.List = 2*time.Second, call, call
		w.provider = fake.NewProvider(c, fake.Inside{Run: w.agent})
		defer w.provider.Close()
		storetest.CreateShard(t, w.db.Connect(), "default")
		replica, err := coordinator.New(coordinator.Config{
			Shard: "default", ID: "coord-a", Listen: "coord-a",
			Advertise: "coord-a", Version: "v0",
		}, coordinator.Deps{
			Store: w.db.Connect(), Providers: map[string]provider.Provider{"mem": w.provider},
			Logger: slog.New(slog.DiscardHandler),
			Listen: func(context.Context, string) (net.Listener, error) { return bufconn.Listen(1 << 10), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- replica.Run(ctx) }()
		defer func() {
			cancel()
			<-ended
		}()
		w.until("a leader is at work", func() bool { return len(w.list(store.KindLeader)) > 0 })
		test(w)
	})
}

// agent plays an agent: it registers and reports once.
func (w *shard) agent(ctx context.Context, boot fake.Boot) {
	id := boot.Bootstrap.Instance
	w.say(id, boot.ID, store.StreamOpen)
	<-ctx.Done()
}

// say has the gateway write how a stream is, and a report.
func (w *shard) say(id, boot string, state store.StreamState) {
	w.mu.Lock()
	why := w.sick(id)
	w.mu.Unlock()
	w.put(store.KindReports, id, store.Report{
		Schema: 1, Instance: id, BootID: boot, Received: time.Now().UTC(),
		Healthy: why == "", Why: why,
	})
	alive := store.Alive{
		Schema: 1, Instance: id, Replica: "coord-a", BootID: boot, Epoch: 1, State: state,
		Since: time.Now().UTC(),
	}
	if state == store.StreamLost {
		alive.Why = "connection reset"
	}
	w.put(store.KindAlive, id, alive)
}

// falls has an instance report that it is not healthy.
func (w *shard) falls(id, why string) {
	w.sick = func(other string) string {
		if other == id {
			return why
		}
		return ""
	}
	w.say(id, w.boot(id), store.StreamOpen)
}

// loses breaks the streams of instances and, when their leases end, takes their sessions away.
func (w *shard) loses(ids ...string) {
	for _, id := range ids {
		w.say(id, w.boot(id), store.StreamLost)
	}
	w.pass(17 * time.Second)
	for _, id := range ids {
		w.drop(id)
	}
	w.pass(2 * time.Second)
}

// drop takes the session of an instance away, as the end of its lease does.
func (w *shard) drop(id string) {
	w.t.Helper()
	if _, err := w.st.Commit(w.t.Context(),
		store.Txn{Writes: []store.Write{store.Delete(w.keys.Alive(id))}}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *shard) boot(id string) string {
	w.t.Helper()
	kv, err := w.st.Get(w.t.Context(), w.keys.Alive(id))
	if err != nil {
		w.t.Fatal(err)
	}
	v, err := store.Decode[store.Alive](kv)
	if err != nil {
		w.t.Fatal(err)
	}
	return v.Record.BootID
}

func (w *shard) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (w *shard) until(what string, is func() bool) {
	w.t.Helper()
	for begun := time.Now(); !is(); w.pass(100 * time.Millisecond) {
		if time.Since(begun) > 10*time.Minute {
			_, out, _ := w.run("status")
			w.t.Fatalf("after 10m it is still not so that %s\n%s", what, out)
		}
	}
}

func (w *shard) list(kind string) []store.KV {
	w.t.Helper()
	l, err := w.st.List(w.t.Context(), w.keys.Of(kind), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return l.KVs
}

func (w *shard) status(group string) (st store.Status) {
	w.t.Helper()
	for _, kv := range w.list(store.KindStatus) {
		v, err := store.Decode[store.Status](kv)
		if err != nil {
			w.t.Fatal(err)
		}
		if v.Record.Group == group {
			st = v.Record
		}
	}
	return st
}

// held waits until the leader holds work back by a rule.
func (w *shard) held(group, rule string) {
	w.t.Helper()
	w.until("something is held by "+rule, func() bool {
		for _, b := range w.status(group).Blocked {
			if b.Rule == rule {
				return true
			}
		}
		return false
	})
}

// ids returns the instances, in order.
func (w *shard) ids() (ids []string) {
	w.t.Helper()
	for _, kv := range w.list(store.KindInstances) {
		_, id, _ := w.keys.Split(kv.Key)
		ids = append(ids, id)
	}
	return ids
}

// running returns an instance that runs.
func (w *shard) running() string {
	w.t.Helper()
	for _, kv := range w.list(store.KindInstances) {
		v, err := store.Decode[store.Instance](kv)
		if err != nil {
			w.t.Fatal(err)
		}
		if v.Record.Phase == store.Running {
			return v.Record.ID
		}
	}
	w.t.Fatal("no instance runs")
	return ""
}

// explains runs explain and checks that it says all of this, in this order. What it says is logged,
// for its reader.
func (w *shard) explains(name string, texts ...string) string {
	w.t.Helper()
	w.terminal = true
	_, shown, _ := w.run("explain", name)
	w.terminal = false
	w.t.Logf("%% leasehold explain %s\n%s", name, shown)
	for _, line := range strings.Split(shown, "\n") {
		if n := len([]rune(line)); n > output.LineWidth && !strings.Contains(line, "leasehold ") {
			w.t.Errorf("%d columns: %s", n, line)
		}
	}
	code, out, problem := w.run("explain", name)
	if code != Done {
		w.t.Fatalf("explain %s: exit %d\n%s%s", name, code, out, problem)
	}
	saysInOrder(w.t, out, texts...)
	return out
}
