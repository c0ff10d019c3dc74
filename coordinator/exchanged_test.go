package coordinator_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/store"
)

func (w *world) shard() store.Shard {
	w.t.Helper()
	v, err := store.Decode[store.Shard](w.list(w.keys.Shard())[0])
	if err != nil {
		w.t.Fatal(err)
	}
	return v.Record
}

// An etcd that was restored or exchanged may be older than the machines: the shard holds itself,
// whether a coordinator saw it happen or was away meanwhile, and goes on once an operator has
// released it.
//
// proves SAFE-12
func TestAnotherEtcdPutsTheShardOnHold(t *testing.T) {
	for name, c := range map[string]struct {
		exchange func(w *world)
		why      string
	}{
		"another cluster": {func(w *world) { w.db.Faults().ChangeCluster() }, "etcd is another cluster"},
		"revision backwards": {func(w *world) {
			w.db.Faults().ShowRevision(2)
		}, "revision went backwards"},
	} {
		for _, away := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", without a leader"}[away], func(t *testing.T) {
				inWorld(t, quick, func(w *world) {
					w.start("zero") // so that agents have where to go
					w.leads(time.Second, "zero")
					w.apply(w.group("web", 2))
					ids := w.up(2)
					w.pass(time.Minute)
					if away {
						w.replicas[0].stop()
						c.exchange(w)
						w.start("zero")
					} else {
						c.exchange(w)
					}
					w.until(20*time.Second, "it is on hold", func() bool { return w.shard().Hold != nil })
					if h := w.shard().Hold; h.By != "leasehold" || !strings.Contains(h.Why, c.why) {
						t.Errorf("hold %+v", h)
					}
					if n := slices.IndexFunc(w.journal(),
						func(e store.Versioned[store.JournalEntry]) bool { return e.Record.Rule == "SAFE-12" }); n < 0 {
						t.Error("the journal does not tell of it")
					}
					w.pass(5 * time.Second)
					w.provider.Crash(ids[0], "exit 1")
					w.always(10*time.Minute, "nothing is made or removed",
						func() bool { return w.made() == 2 && len(w.provider.Existing()) == 2 })
					w.editShard(func(s *store.Shard) { s.Release(time.Now().UTC()) })
					w.until(5*time.Minute, "the crashed one is replaced",
						func() bool { return w.settled(2) && !slices.Contains(w.ids(), ids[0]) })
					if w.shard().Hold != nil {
						t.Errorf("it is on hold again: %+v", w.shard().Hold)
					}
				})
			})
		}
	}
}

// What served said cannot be known any more: the shard is held before it is written again.
//
// proves SAFE-16
func TestUnreadableServedHoldsTheShard(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("zero")
		w.leads(time.Second, "zero")
		w.apply(w.group("web", 2))
		w.up(2)
		w.replicas[0].stop()
		for range 12 { // more than are tried
			w.put(w.keys.Served(), []byte("garbage"))
		}
		w.start("one")
		w.until(time.Minute, "served can be read", func() bool {
			_, err := store.Decode[store.Served](w.list(w.keys.Served())[0])
			return err == nil
		})
		if w.shard().Hold == nil {
			t.Error("it was written again without a hold")
		}
	})
}

// locked is a store that refuses every change of a key.
type locked struct {
	store.Store
	key string
}

func (s locked) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	if slices.ContainsFunc(txn.Writes, func(w store.Write) bool { return w.Key == s.key }) {
		return 0, store.ErrDenied
	}
	return s.Store.Commit(ctx, txn)
}

// A hold that cannot be written is an error in the log, once, however often it is tried.
//
// proves SAFE-12, OBS-1
func TestAHoldThatCannotBeWritten(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		book := newLogbook()
		w.start("zero", book.kept, func(_ *coordinator.Config, deps *coordinator.Deps) {
			deps.Store = locked{deps.Store, w.keys.Shard()}
		})
		w.leads(time.Second, "zero")
		w.pass(time.Minute)
		w.db.Faults().ChangeCluster()
		w.pass(time.Minute)
		if w.shard().Hold != nil {
			t.Fatal("it was written")
		}
		const msg = "etcd was exchanged, and the shard could not be put on hold: trying again"
		if n := count(book.since(0, slog.LevelError), slog.LevelError, msg, "error"); len(n) != 1 ||
			n["hold shard: "+store.ErrDenied.Error()] != 1 {
			t.Errorf("logged %v", n)
		}
		if n := count(book.since(0, slog.LevelWarn), slog.LevelWarn, "shard put on hold", "why"); len(n) != 0 {
			t.Errorf("logged %v, and it is not on hold", n)
		}
	})
}

// mute is a store that does not say what etcd is while it is silent.
type mute struct {
	store.Store
	silent *atomic.Bool
}

func (s mute) Vitals(ctx context.Context) (store.Vitals, error) {
	if s.silent.Load() {
		return store.Vitals{}, context.DeadlineExceeded
	}
	return s.Store.Vitals(ctx)
}

// A leader that could not ask which etcd it is writes down what it knew: the next one takes the
// same etcd for the same, and another one for another.
//
// proves SAFE-12, DAY-5
func TestServedKeepsTheClusterWithoutVitals(t *testing.T) {
	for name, exchanged := range map[string]bool{"the same etcd": false, "another etcd": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, quick, func(w *world) {
				served := func() store.Served { return decoded[store.Served](w, w.list(w.keys.Served())[0]).Record }
				var silent atomic.Bool
				one := w.start("one", func(_ *coordinator.Config, deps *coordinator.Deps) {
					deps.Store = mute{deps.Store, &silent}
				})
				w.leads(time.Minute, "one")
				w.pass(time.Minute)
				before := served()
				silent.Store(true)
				w.pass(time.Minute)
				after := served()
				if after.Cluster == "" || after.Cluster != before.Cluster || after.Revision < before.Revision ||
					!after.At.After(before.At) {
					t.Errorf("%+v, after %+v", after, before)
				}
				one.stop()
				if exchanged {
					w.db.Faults().ChangeCluster()
				}
				w.start("two")
				w.leads(time.Minute, "two")
				w.pass(time.Minute)
				s := served()
				if held := w.shard().Hold != nil; held != exchanged || s.Since.Equal(before.Since) == exchanged {
					t.Errorf("on hold: %t, %+v", held, s)
				}
			})
		})
	}
}

// A record that names no cluster is no sign of another one.
//
// proves SAFE-12, DAY-5
func TestServedWithoutAClusterKeepsThePast(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		since := time.Now().UTC().Add(-48 * time.Hour)
		w.put(w.keys.Served(), store.Encode(store.Served{
			Schema: store.Schema, At: time.Now().UTC(), Replica: "zero", Since: since,
		}))
		w.start("one")
		w.leads(time.Minute, "one")
		w.pass(time.Minute)
		s := decoded[store.Served](w, w.list(w.keys.Served())[0]).Record
		if s.Replica != "one" || s.Cluster == "" || !s.Since.Equal(since) {
			t.Errorf("%+v", s)
		}
	})
}
