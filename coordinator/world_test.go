package coordinator_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

const sessionTTL = 5 * time.Second

// world is a shard in a synctest bubble: a database, a provider whose machines run agents, and
// replicas. At its end nothing of it may be left running, else the bubble says so.
type world struct {
	t        *testing.T
	log      *slog.Logger
	db       *memstore.Database
	store    *memstore.Store // the test's own
	keys     store.Keys
	provider *fake.Provider
	net      *network
	read     reading
	over     chan struct{} // closed when the test ends
	// uncreated: the shard's record is the test's to make, and to lose.
	uncreated bool
	// address is where the workload of an instance is reached; nil: nowhere.
	address func(instance string) string

	mu           sync.Mutex
	moods        map[string]mood
	everyone     mood
	moodsChanged chan struct{} // closed, and another made, when they do
	works        map[string]*work
	refused      map[string]map[protocol.Refused_Reason]int // by instance
	replicas     []*replica
}

// replica is one coordinator process.
type replica struct {
	w      *world
	id     string
	store  *memstore.Store
	cancel context.CancelFunc
	done   chan struct{}
	err    error // once done
}

// inWorld runs a test in a world without replicas and groups.
func inWorld(t *testing.T, config fake.Config, test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
			db: memstore.New(memstore.Config{}), keys: store.KeysOf("test"), net: newNetwork(),
			read: reading{lists: map[string]listing{}, records: map[string]record{}}, over: make(chan struct{}),
			moods: map[string]mood{}, moodsChanged: make(chan struct{}), works: map[string]*work{},
			refused: map[string]map[protocol.Refused_Reason]int{},
		}
		w.store = w.db.Connect()
		w.provider = fake.NewProvider(config, fake.Inside{Run: w.runMachine, Address: func(id string) string {
			if w.address == nil {
				return ""
			}
			return w.address(id)
		}})
		defer w.db.Close()
		defer w.provider.Close()
		defer func() {
			close(w.over)
			for _, r := range w.replicas {
				r.cancel()
				<-r.done
			}
		}()
		test(w)
	})
}

// start starts a replica; the options change what it works with.
func (w *world) start(id string, options ...func(*coordinator.Config, *coordinator.Deps)) *replica {
	w.t.Helper()
	r := &replica{w: w, id: id, store: w.db.Connect(), done: make(chan struct{})}
	cfg := coordinator.Config{Shard: "test", ID: id, Listen: id, Advertise: id, SessionTTL: sessionTTL, Version: "test"}
	deps := coordinator.Deps{
		Store: r.store, Providers: map[string]provider.Provider{"mem": w.provider}, Logger: w.log, Listen: w.net.listen,
	}
	for _, option := range options {
		option(&cfg, &deps)
	}
	if !w.uncreated && len(w.list(w.keys.Shard())) == 0 {
		w.editShard(func(*store.Shard) {})
	}
	c, err := coordinator.New(cfg, deps)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() {
		defer close(r.done)
		r.err = c.Run(ctx)
	}()
	w.replicas = append(w.replicas, r)
	return r
}

// before has a function called at the boundaries of a replica.
func before(f func(boundary, instance string)) func(*coordinator.Config, *coordinator.Deps) {
	return func(_ *coordinator.Config, deps *coordinator.Deps) { deps.Before = f }
}

// stop ends a replica in order.
func (r *replica) stop() {
	r.cancel()
	<-r.done
	if r.err != nil {
		r.w.t.Errorf("replica %s: %v", r.id, r.err)
	}
}

// kill ends a replica as a crash does: nothing that it still says arrives anywhere. It does not
// wait for it.
func (r *replica) kill() {
	r.store.Faults().Cut()
	r.w.net.kill(r.id)
	r.cancel()
}

// pass lets time go by.
func (w *world) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// until waits until something is so, for at most a time.
func (w *world) until(most time.Duration, what string, is func() bool) time.Duration {
	w.t.Helper()
	began := time.Now()
	for !is() {
		if time.Since(began) >= most {
			w.t.Fatalf("after %s it is still not so that %s\n%s", most, what, w.describe())
		}
		w.pass(100 * time.Millisecond)
	}
	return time.Since(began)
}

// always checks for a time that something stays so.
func (w *world) always(d time.Duration, what string, is func() bool) {
	w.t.Helper()
	step := max(100*time.Millisecond, d/2000)
	for end := time.Now().Add(d); time.Now().Before(end); w.pass(step) {
		if !is() {
			w.t.Fatalf("it is no longer so that %s\n%s", what, w.describe())
		}
	}
}

func (w *world) noteRefused(instance string, reason protocol.Refused_Reason) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused[instance] == nil {
		w.refused[instance] = map[protocol.Refused_Reason]int{}
	}
	w.refused[instance][reason]++
}

// group is a group as the test's operators want it.
func (w *world) group(name string, size int) store.Group {
	g := store.DefaultGroup()
	g.Name, g.Size, g.Provider = name, size, "mem"
	g.Complete()
	return g
}

// apply puts a spec.
func (w *world) apply(g store.Group) store.Revision {
	w.t.Helper()
	return w.put(w.keys.Group(g.Name), store.Encode(g))
}

func (w *world) put(key string, value []byte) store.Revision {
	w.t.Helper()
	rev, err := w.store.Commit(w.t.Context(), store.Txn{Writes: []store.Write{store.Put(key, value)}})
	if err != nil {
		w.t.Fatal(err)
	}
	return rev
}

func (w *world) remove(key string) {
	w.t.Helper()
	if _, err := w.store.Commit(w.t.Context(), store.Txn{Writes: []store.Write{store.Delete(key)}}); err != nil {
		w.t.Fatal(err)
	}
}

// editShard changes the shard's record, making it if there is none yet.
func (w *world) editShard(edit func(*store.Shard)) {
	w.t.Helper()
	rec := store.Shard{
		Schema: store.Schema, ID: "shard1", Name: "test", Created: time.Now().UTC(),
		Settings: store.DefaultShardSettings(),
	}
	if kvs := w.list(w.keys.Shard()); len(kvs) > 0 {
		v, err := store.Decode[store.Shard](kvs[0])
		if err != nil {
			w.t.Fatal(err)
		}
		rec = v.Record
	}
	edit(&rec)
	w.put(w.keys.Shard(), store.Encode(rec))
}

func (w *world) instances() []store.Versioned[store.Instance] {
	w.t.Helper()
	return records[store.Instance](w, store.KindInstances)
}

func (w *world) journal() []store.Versioned[store.JournalEntry] {
	w.t.Helper()
	return records[store.JournalEntry](w, store.KindEvents)
}

func (w *world) status(group string) store.Status {
	w.t.Helper()
	for _, s := range records[store.Status](w, store.KindStatus) {
		if s.Record.Group == group {
			return s.Record
		}
	}
	return store.Status{}
}

// settled reports whether a group has so many instances, all of them running, and nothing else.
func (w *world) settled(size int) bool {
	w.t.Helper()
	list := w.instances()
	for _, in := range list {
		if in.Record.Phase != store.Running {
			return false
		}
	}
	return len(list) == size
}

// up waits until there are so many instances, all running, and returns their IDs.
func (w *world) up(size int) []string {
	w.t.Helper()
	w.until(5*time.Minute, "all instances run", func() bool { return w.settled(size) })
	return w.ids()
}

func (w *world) ids() []string {
	w.t.Helper()
	var ids []string
	for _, in := range w.instances() {
		ids = append(ids, in.Record.ID)
	}
	return ids
}

// leader is the replica that leads now.
func (w *world) leader() string {
	w.t.Helper()
	kv, ok := store.LeaderNow(w.list(w.keys.Of(store.KindLeader)))
	if !ok {
		return ""
	}
	return decoded[store.Leader](w, kv).Record.Replica
}

// leads waits until a replica leads and has said so in the journal.
func (w *world) leads(most time.Duration, id string) time.Duration {
	w.t.Helper()
	count := w.told(id, "ELECT-1")
	return w.until(most, id+" leads",
		func() bool { return w.leader() == id && (count > 0 || w.told(id, "ELECT-1") > count) })
}

// told counts the entries of a rule that a replica wrote.
func (w *world) told(by, rule string) int {
	w.t.Helper()
	n := 0
	for _, e := range w.journal() {
		if (by == "" || e.Record.By == by) && e.Record.Rule == rule {
			n++
		}
	}
	return n
}

// made counts the machines that were ever made.
func (w *world) made() int { return w.provider.Made() }

// unchanged checks that the instances are the same, and that none was made beside them.
func (w *world) unchanged(ids []string) {
	w.t.Helper()
	if now := w.ids(); !slices.Equal(now, ids) || w.made() != len(ids) || !w.settled(len(ids)) {
		w.t.Errorf("instances are %v, want %v as before; %d machines were made\n%s", now, ids, w.made(), w.describe())
	}
}

func (w *world) describe() string {
	var b strings.Builder
	for _, in := range w.instances() {
		b.WriteString(in.Record.ID + " " + string(in.Record.Phase) + ": " + in.Record.Last.Rule + " " +
			in.Record.Last.Why + "\n")
	}
	for _, kv := range w.list(w.keys.Of(store.KindAlive)) {
		b.WriteString(kv.Key + " " + string(kv.Value) + "\n")
	}
	for _, kv := range w.list(w.keys.Of(store.KindStatus)) {
		b.WriteString(kv.Key + " " + string(kv.Value) + "\n")
	}
	b.WriteString("machines: " + strings.Join(w.provider.Existing(), " "))
	return b.String()
}

func ptr[T any](v T) *T { return &v }

// request puts an operator's request.
func (w *world) request(id string, r store.Request) {
	w.t.Helper()
	r.Schema, r.ID, r.By, r.At = store.Schema, id, "ann", time.Now().UTC()
	w.put(w.keys.Request(id), store.Encode(r))
}

func (w *world) extra(instance, group string) {
	w.t.Helper()
	_, err := w.provider.Create(w.t.Context(), provider.CreateRequest{Bootstrap: provider.Bootstrap{
		Schema: provider.BootstrapSchema, Instance: instance, Group: group, Shard: "shard1",
		Coordinators: []string{"one"},
	}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// cutOff has agents fall silent, while their machines go on.
func (w *world) cutOff(ids ...string) {
	for _, id := range ids {
		w.setMood(id, mood{mute: true})
	}
}

// storms reports whether a group is in a storm.
func (w *world) storms(group string) bool {
	w.t.Helper()
	s := w.status(group).Storm
	return s != nil && s.Ended == ""
}

// manyFail has all machines of a group fail at once, and sees by which calls they are replaced.
func manyFail(t *testing.T, size int, rate float64, burst int, callTime time.Duration) {
	t.Helper()
	inWorld(t, callsOf(callTime), func(w *world) {
		w.editShard(func(s *store.Shard) { s.Settings.CreateRate, s.Settings.CreateBurst = rate, burst })
		w.setEveryone(mood{mute: true}) // their agents do not matter here
		w.start("one")
		g := w.group("web", size)
		g.RegistrationTimeout = store.Duration(24 * time.Hour)
		w.apply(g)
		w.until(30*time.Minute, "all are there", func() bool { return w.status("web").Phases[store.Booting] == size })
		began := time.Now()
		for _, id := range w.provider.Existing() {
			w.provider.Crash(id, "exit 1")
		}
		w.pass(time.Duration(size) * 480 * time.Millisecond) // each takes two calls to be removed, eight go at once
		w.until(time.Hour, "all are replaced", func() bool {
			return w.status("web").Phases[store.Booting] == size && w.made() == 2*size &&
				len(w.provider.Existing()) == size
		})
		var at []time.Time
		for _, l := range w.provider.Ledger() {
			if l.Overlapped || l.Made > 1 {
				t.Errorf("%s: made %d times, calls overlapped: %t", l.Instance, l.Made, l.Overlapped)
			}
			if l.MadeAt.After(began) {
				at = append(at, l.MadeAt)
			}
		}
		slices.SortFunc(at, time.Time.Compare)
		most := int(10*rate) + burst + 1 // in 10s, and one more for the jitter of a call
		for i := range max(0, len(at)-most) {
			if d := at[i+most].Sub(at[i]); d < 10*time.Second-200*time.Millisecond {
				t.Fatalf("%d creations within %s, and %g a second with a burst of %d are allowed", most+1, d, rate,
					burst)
			}
		}
		if n := w.provider.MostAtOnce(); n > 24 || n < 8 {
			t.Errorf("%d calls were under way at once", n)
		}
	})
}
