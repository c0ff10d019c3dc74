package coordinator_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/store"
)

func stateFile(path string) func(*coordinator.Config, *coordinator.Deps) {
	return func(c *coordinator.Config, _ *coordinator.Deps) { c.StateFile = path }
}

// waits is why a replica says that it waits; "" if it does not.
func (w *world) waits(id string) string {
	w.t.Helper()
	for _, r := range records[store.Replica](w, store.KindReplicas) {
		if r.Record.ID == id && r.Record.Waits != nil {
			return r.Record.Waits.Why
		}
	}
	return ""
}

func (w *world) noElection() bool { return len(w.list(w.keys.Of(store.KindLeader))) == 0 }

// A replica creates no shard: it waits for one.
//
// proves SAFE-15
func TestAReplicaCreatesNoShard(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.uncreated = true
		w.start("one")
		w.until(10*time.Second, "it says that it waits",
			func() bool { return strings.Contains(w.waits("one"), "leasehold init creates it") })
		w.always(10*time.Minute, "there is no shard, and no election", func() bool {
			return len(w.list(w.keys.Shard())) == 0 && w.noElection()
		})
		w.editShard(func(*store.Shard) {})
		w.leads(10*time.Second, "one")
		if why := w.waits("one"); why != "" {
			t.Errorf("it still says that it waits: %s", why)
		}
	})
}

// Where etcd was made for a shard from a backup, the advice is to restore it.
//
// proves SAFE-15
func TestAReplicaWaitsForAShardFromABackup(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.uncreated = true
		w.start("one", func(c *coordinator.Config, _ *coordinator.Deps) { c.AwaitsBackup = true })
		w.until(10*time.Second, "it says that it waits for a restore", func() bool {
			return strings.Contains(w.waits("one"), "leasehold restore FILE") && !strings.Contains(w.waits("one"), "init")
		})
		w.editShard(func(*store.Shard) {})
		w.leads(10*time.Second, "one")
	})
}

// The shard's record vanishes, or becomes another's, under running replicas: they keep running,
// decide nothing, and go on once it is back.
//
// proves SAFE-15
func TestReplicasWaitForAShardThatIsLost(t *testing.T) {
	for name, harm := range map[string]func(w *world){
		"deleted": func(w *world) { w.remove(w.keys.Shard()) },
		"another": func(w *world) { w.editShard(func(s *store.Shard) { s.ID = "another" }) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, quick, func(w *world) {
				w.start("one")
				w.leads(10*time.Second, "one")
				w.start("two")
				w.apply(w.group("web", 2))
				ids := w.up(2)
				w.pass(time.Minute)
				good := w.shard()
				harm(w)
				for _, id := range []string{"one", "two"} {
					w.until(10*time.Second, id+" waits",
						func() bool { return strings.Contains(w.waits(id), "leasehold recover") })
				}
				w.until(10*time.Second, "there is no leader", w.noElection)
				w.provider.Crash(ids[0], "exit 1")
				w.always(10*time.Minute, "nothing is made or removed, there is no leader", func() bool {
					return w.made() == 2 && len(w.provider.Existing()) == 2 && w.noElection()
				})
				w.put(w.keys.Shard(), store.Encode(good))
				w.until(5*time.Minute, "the crashed one is replaced",
					func() bool { return w.settled(2) && !slices.Contains(w.ids(), ids[0]) })
				if slices.Contains(w.provider.Existing(), ids[0]) || !slices.Contains(w.ids(), ids[1]) {
					t.Errorf("%s crashed, and there are %v", ids[0], w.ids())
				}
			})
		})
	}
}

// What a replica knows outlives it: an etcd without the shard, or with another, is not taken for a
// new one, and an older etcd is not believed.
//
// proves SAFE-15, SAFE-12
func TestAReplicaKnowsItsShardAfterARestart(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(w *world)
		why  string // that it waits; "": it holds the shard
	}{
		"emptied": {func(w *world) {
			for _, kv := range w.list(w.keys.Prefix()) {
				w.remove(kv.Key)
			}
		}, "is missing from etcd"},
		"another": {
			func(w *world) { w.editShard(func(s *store.Shard) { s.ID = "another" }) },
			"holds another shard of this name",
		},
		"older":           {func(w *world) { w.db.Faults().ShowRevision(2) }, ""},
		"another cluster": {func(w *world) { w.db.Faults().ChangeCluster() }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state", "test.json")
			inWorld(t, quick, func(w *world) {
				one := w.start("one", stateFile(path))
				w.apply(w.group("web", 2))
				w.up(2)
				w.pass(time.Minute)
				good := w.shard()
				one.stop()
				// What a leader noted in etcd is lost with it.
				w.remove(w.keys.Served())
				c.harm(w)
				w.start("one", stateFile(path), func(*coordinator.Config, *coordinator.Deps) { w.uncreated = true })
				if c.why == "" {
					w.until(10*time.Second, "the shard is on hold", func() bool { return w.shard().Hold != nil })
					if g := w.shard().Generation; g <= good.Generation {
						t.Errorf("generation %d after %d", g, good.Generation)
					}
					w.editShard(func(s *store.Shard) { s.Release(time.Now().UTC()) })
					w.always(10*time.Minute, "it is not held again", func() bool { return w.shard().Hold == nil })
					w.start("late", stateFile(path))
					w.always(time.Minute, "nor by a replica that hears of it later",
						func() bool { return w.shard().Hold == nil })
					return
				}
				w.until(10*time.Second, "it waits", func() bool { return strings.Contains(w.waits("one"), c.why) })
				w.always(10*time.Minute, "nothing is decided", func() bool { return w.made() == 2 && w.noElection() })
				w.put(w.keys.Shard(), store.Encode(good))
				w.leads(10*time.Second, "one")
			})
		})
	}
}

// A state file that cannot be read, or is another shard's, is an error: a replica that guesses that
// it knew nothing would take an emptied etcd for a new one.
//
// proves SAFE-15
func TestASpoiledStateFileIsAnError(t *testing.T) {
	for name, content := range map[string]string{
		"garbage":       "{",
		"another shard": `{"schema":1,"shard":"other","shard_id":"x"}`,
		"newer":         `{"schema":99,"shard":"test"}`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "test.json")
			writeFile(t, path, content)
			inWorld(t, quick, func(w *world) {
				r := w.start("one", stateFile(path))
				<-r.done
				if r.err == nil || !strings.Contains(r.err.Error(), path) {
					t.Errorf("%v", r.err)
				}
			})
		})
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// An etcd that lost its data gets a shard with another ID, and replicas that knew neither serve it:
// the machines and workloads of the old one run on, whatever is made and deleted beside them.
//
// proves SAFE-14, SAFE-15
func TestAShardWithAnotherIDStopsNothing(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		one := w.start("one")
		w.apply(w.group("web", 3))
		old := w.up(3)
		w.pass(time.Minute)
		one.stop()
		for _, kv := range w.list(w.keys.Prefix()) {
			w.remove(kv.Key)
		}
		w.editShard(func(s *store.Shard) { s.ID = "another" })
		w.start("one") // it has no state file, and where agents look for it
		w.apply(w.group("web", 3))
		w.until(5*time.Minute, "the other shard is complete", func() bool { return w.settled(3) })
		w.edit("web", func(g *store.Group) { g.Deleting = true })
		w.until(5*time.Minute, "its group is gone",
			func() bool { return len(w.list(w.keys.Of(store.KindGroups))) == 0 })
		w.always(time.Hour, "the old machines are there, and the group's are gone",
			func() bool { return slices.Equal(w.provider.Existing(), old) })
		for _, id := range old {
			if told := w.refused[id]; told[protocol.Refused_WRONG_SHARD] == 0 || told[protocol.Refused_RETIRED] > 0 {
				t.Errorf("%s was told %v", id, told)
			}
		}
	})
}
