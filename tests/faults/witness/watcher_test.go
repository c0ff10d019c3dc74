package witness

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/embedetcd"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// limit bounds what must not hang. Nothing here takes that long unless it is broken.
const limit = 2 * time.Minute

const prefix = "/leasehold/default/"

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// Started once for each process by packages that an embedded etcd links.
		goleak.IgnoreAnyFunction("gopkg.in/natefinch/lumberjack%2ev2.(*Logger).millRun"),
	)
}

// world is one member of an etcd, and a watcher beside it.
type world struct {
	t       *testing.T
	dir     string
	server  *embedetcd.Server
	client  *clientv3.Client
	log     *history.Log
	watcher *Watcher
	stop    func()
}

func newWorld(t *testing.T, more ...string) *world {
	t.Helper()
	w := &world{t: t, dir: filepath.Join(t.TempDir(), "etcd"), stop: func() {}}
	w.start("127.0.0.1:0")
	t.Cleanup(func() { w.end() })
	var err error
	if w.log, err = history.Open(filepath.Join(t.TempDir(), "history")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.log.Close(); err != nil {
			t.Error(err)
		}
	})
	if w.watcher, err = New(Config{
		Endpoints: append(more, w.server.Endpoint()), Prefix: prefix,
		Log: w.log,
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.stop() })
	return w
}

func (w *world) context() context.Context {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	w.t.Cleanup(cancel)
	return ctx
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// start starts the member on the data that are there.
func (w *world) start(listen string) {
	w.t.Helper()
	var err error
	w.server, err = embedetcd.Start(w.context(), embedetcd.Config{DataDir: w.dir, Listen: listen, NoSync: true})
	w.must(err)
	w.client, err = clientv3.New(clientv3.Config{Endpoints: []string{w.server.Endpoint()}})
	w.must(err)
}

// end ends the member.
func (w *world) end() {
	w.t.Helper()
	if w.server == nil {
		return
	}
	w.must(w.client.Close())
	w.must(w.server.Close())
	w.server = nil
}

// again ends the member, does something to its data, and starts it where it was.
func (w *world) again(between func()) {
	w.t.Helper()
	at := w.server.Endpoint()
	w.end()
	between()
	w.start(at)
}

// watch has the watcher run until the function that it returns is called.
func (w *world) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.watcher.Run(ctx)
	}()
	w.stop = func() {
		cancel()
		<-ended
		w.stop = func() {}
	}
}

func (w *world) put(name, value string) store.Revision {
	w.t.Helper()
	answer, err := w.client.Put(w.context(), prefix+name, value)
	w.must(err)
	return store.Revision(answer.Header.Revision)
}

func (w *world) remove(name string) store.Revision {
	w.t.Helper()
	answer, err := w.client.Delete(w.context(), prefix+name)
	w.must(err)
	return store.Revision(answer.Header.Revision)
}

func (w *world) settle() {
	w.t.Helper()
	w.must(w.watcher.Settle(w.context()))
}

// told is what is in the log, in short: line name=value, with ? where it was found and - where it
// went.
func (w *world) told() string {
	var out []string
	last := store.Revision(0)
	line := 0
	for _, e := range w.log.Events() {
		switch c := e.Change; {
		case e.Mark != nil && e.Mark.What == history.Missed:
			out = append(out, "missed")
		case c != nil:
			if c.Line == line && c.Revision < last {
				w.t.Errorf("revision %d came after %d", c.Revision, last)
			}
			line, last = c.Line, c.Revision
			text := fmt.Sprintf("%d %s=%s", c.Line, strings.TrimPrefix(c.Key, prefix), c.Value)
			if c.Deleted {
				text = fmt.Sprintf("%d -%s", c.Line, strings.TrimPrefix(c.Key, prefix))
			}
			if c.Found {
				text += "?"
			}
			out = append(out, text)
		}
	}
	return strings.Join(out, ", ")
}

func (w *world) wants(told string) {
	w.t.Helper()
	if got := w.told(); got != told {
		w.t.Fatalf("the log says\n  %s\nand should say\n  %s", got, told)
	}
	var now, kept []string
	for _, kv := range w.watcher.Now().KVs {
		now = append(now, kv.Key+"="+string(kv.Value))
	}
	answer, err := w.client.Get(w.context(), prefix, clientv3.WithPrefix())
	w.must(err)
	for _, kv := range answer.Kvs {
		kept = append(kept, string(kv.Key)+"="+string(kv.Value))
	}
	if !slices.Equal(now, kept) {
		w.t.Fatalf("the cache is %v, and etcd has %v", now, kept)
	}
}

func TestEveryChangeIsSeenOnce(t *testing.T) {
	w := newWorld(t)
	w.put("a", "1")
	w.watch()
	w.settle()
	w.put("a", "2")
	_, err := w.client.Txn(w.context()).Then(clientv3.OpPut(prefix+"b", "3"), clientv3.OpPut(prefix+"c", "3"),
		clientv3.OpDelete(prefix+"a")).Commit()
	w.must(err)
	_, err = w.client.Put(w.context(), "/elsewhere", "x")
	w.must(err)
	last := w.put("b", "4")
	w.must(w.watcher.UpTo(w.context(), last))
	w.wants("1 a=1?, 1 a=2, 1 b=3, 1 c=3, 1 -a, 1 b=4")
	answer, err := w.client.Put(w.context(), "/elsewhere", "y")
	w.must(err)
	w.must(w.watcher.UpTo(w.context(), store.Revision(answer.Header.Revision))) // also where nothing came of it
	w.settle()
	w.again(func() {})
	w.put("c", "5")
	w.settle()
	w.wants("1 a=1?, 1 a=2, 1 b=3, 1 c=3, 1 -a, 1 b=4, 1 c=5")
}

func TestWhatWasCompactedIsFoundAgain(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.put(name, "1")
	}
	w.watch()
	w.settle()
	w.stop()
	w.put("a", "2")
	w.remove("b")
	last := w.put("a", "3")
	_, err := w.client.Compact(w.context(), int64(last))
	w.must(err)
	w.put("d", "1")
	w.watch()
	w.settle()
	w.put("e", "1")
	w.settle()
	w.wants("1 a=1?, 1 b=1?, 1 c=1?, missed, 1 a=3?, 1 -b?, 1 d=1?, 1 e=1")
}

func TestWipedDataAreAnotherLine(t *testing.T) {
	w := newWorld(t)
	w.watch()
	w.settle()
	for range 5 {
		w.put("a", "1")
	}
	w.settle()
	before := w.told()
	w.again(func() { w.must(os.RemoveAll(w.dir)) })
	w.settle()
	w.put("b", "1")
	w.settle()
	w.wants(before + ", 2 b=1")
}

// The restored data have the same cluster ID and the same term, and their revision has overtaken
// what the watcher knew: only what was written tells.
func TestRestoredDataAreAnotherLineThoughTheirRevisionIsNewer(t *testing.T) {
	for _, compacted := range []bool{false, true} {
		t.Run(fmt.Sprintf("compacted %t", compacted), func(t *testing.T) {
			w := newWorld(t)
			kept := filepath.Join(t.TempDir(), "kept")
			w.put("a", "1")
			w.again(func() { w.must(os.CopyFS(kept, os.DirFS(w.dir))) })
			w.watch()
			w.settle()
			w.put("b", "old")
			w.put("a", "old")
			w.settle()
			w.wants("1 a=1?, 1 b=old, 1 a=old")
			w.stop()
			w.again(func() {
				w.must(os.RemoveAll(w.dir))
				w.must(os.CopyFS(w.dir, os.DirFS(kept)))
			})
			w.put("b", "new")
			w.put("c", "new")
			w.put("d", "new")
			last := w.put("e", "new")
			if compacted {
				_, err := w.client.Compact(w.context(), int64(last))
				w.must(err)
			}
			w.watch()
			w.settle()
			w.wants("1 a=1?, 1 b=old, 1 a=old, 2 a=1?, 2 b=new?, 2 c=new?, 2 d=new?, 2 e=new?")
		})
	}
}

func TestDeadAndFrozenMembersAreLeftAlone(t *testing.T) {
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	frozen, err := net.Listen("tcp", "127.0.0.1:0") // it takes connections and answers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Close()
	dead.Close()
	w := newWorld(t, dead.Addr().String(), frozen.Addr().String())
	w.watch()
	w.put("a", "1")
	w.settle()
	w.must(w.watcher.UpTo(w.context(), w.put("a", "2")))
	if told := w.told(); !strings.HasSuffix(told, "1 a=2") {
		t.Fatal(told)
	}
}

func TestLeasesAreShownWithTheirKeys(t *testing.T) {
	w := newWorld(t, "127.0.0.1:1")
	empty, err := w.client.Grant(w.context(), 60)
	w.must(err)
	held, err := w.client.Grant(w.context(), 60)
	w.must(err)
	for _, key := range []string{"b", "a"} {
		_, err = w.client.Put(w.context(), prefix+key, "1", clientv3.WithLease(held.ID))
		w.must(err)
	}
	leases, err := w.watcher.Leases(w.context())
	w.must(err)
	on := leases[store.LeaseID(held.ID).String()]
	if len(leases) != 2 || !slices.Equal(on, []string{prefix + "a", prefix + "b"}) ||
		len(leases[store.LeaseID(empty.ID).String()]) != 0 {
		t.Fatalf("leases %v", leases)
	}
	w.watch()
	w.settle()
	for _, e := range w.log.Events() {
		if e.Change.Lease != store.LeaseID(held.ID) {
			t.Errorf("%s is on lease %s", e.Change.Key, e.Change.Lease)
		}
	}
}

func TestAWatcherThatIsNotServedSaysSo(t *testing.T) {
	w := newWorld(t)
	w.end()
	w.watch()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.watcher.Settle(ctx); err == nil {
		t.Fatal("all was seen of an etcd that is down")
	}
	if now := w.watcher.Now(); now.Line != 0 || len(now.KVs) != 0 {
		t.Fatalf("%+v", now)
	}
}
