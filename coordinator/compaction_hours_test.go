//go:build !race

// Hours are simulated here, of which each second is as the one before: the race detector sees them
// in compaction_test.go.

package coordinator_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/store"
)

// A new leader takes up what the one before has counted: however often they change, history does
// not grow.
func TestHistoryIsCompactedThoughLeadersChange(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		leader, minutes := w.start("one"), 0
		most := w.watchHistory(6*time.Hour, time.Hour, func() {
			if minutes++; minutes%7 == 0 {
				leader.kill()
				leader = w.start("one")
			}
		})
		if most > 2*time.Hour {
			t.Errorf("history was kept for %s", most)
		}
	})
}

// The shards of an etcd do it together as often as one would.
func TestShardsCompactTogether(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		var all []*compactions
		for _, shard := range []string{"test", "two", "three", "four"} {
			c := &compactions{}
			all = append(all, c)
			w.start(shard, c.counted, func(cfg *coordinator.Config, _ *coordinator.Deps) { cfg.Shard = shard })
			w.pass(3 * time.Minute)
		}
		if most := w.watchHistory(7*time.Hour, time.Hour, func() {}); most > 90*time.Minute {
			t.Errorf("history was kept for %s", most)
		}
		sum := 0
		for _, c := range all {
			sum += c.count()
		}
		if sum < 30 || sum > 45 {
			t.Errorf("it was compacted %d times", sum)
		}
	})
}

func TestHistoryIsKeptIfTheShardSaysSo(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		c := &compactions{}
		w.start("one", c.counted)
		w.pass(time.Minute)
		w.editShard(func(s *store.Shard) { s.Settings.CompactAfter = ptr(store.Duration(0)) })
		w.pass(6 * time.Hour)
		if n := c.count(); n > 0 {
			t.Errorf("it was compacted %d times", n)
		}
		w.editShard(func(s *store.Shard) { s.Settings.CompactAfter = ptr(store.Duration(10 * time.Minute)) })
		if most := w.watchHistory(time.Hour, 10*time.Minute, func() {}); most > 20*time.Minute {
			t.Errorf("history was kept for %s", most)
		}
	})
}

// An etcd that is a part of Leasehold has no other compactor.
func TestOwnEtcdIsCompactedWhateverTheShardSays(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one", func(c *coordinator.Config, _ *coordinator.Deps) { c.OwnEtcd = true })
		w.pass(time.Minute)
		w.editShard(func(s *store.Shard) { s.Settings.CompactAfter = ptr(store.Duration(0)) })
		if most := w.watchHistory(3*time.Hour, time.Hour, func() {}); most > 90*time.Minute {
			t.Errorf("history was kept for %s", most)
		}
	})
}

// A compaction that fails costs nothing but a word, once.
func TestACompactionThatFails(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		from time.Duration // when it is told
		want string
	}{
		"no right":  {store.ErrDenied, 80 * time.Minute, "only root"},
		"no answer": {store.ErrUnknown, 130 * time.Minute, "outcome unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, quick, func(w *world) {
				c := &compactions{err: test.err}
				first := w.start("one", c.counted)
				told := func() string {
					kv, err := w.store.Get(t.Context(), w.keys.Served())
					if err != nil {
						t.Fatal(err)
					}
					v, err := store.Decode[store.Served](kv)
					if err != nil {
						t.Fatal(err)
					}
					return v.Record.Uncompacted
				}
				w.pass(time.Minute)
				w.always(test.from-15*time.Minute, "nothing is told yet", func() bool { return told() == "" })
				w.until(20*time.Minute, "it is told", func() bool { return strings.Contains(told(), test.want) })
				w.pass(3 * time.Hour)
				first.stop()
				again := &compactions{err: test.err}
				w.start("two", again.counted)
				w.pass(time.Hour)
				if !strings.Contains(told(), test.want) {
					t.Errorf("the next leader says %q", told())
				}
				entries := 0
				for _, e := range w.story() {
					if strings.Contains(e.What, "not compacted") {
						entries++
					}
				}
				if entries != 1 {
					t.Errorf("%d entries", entries)
				}
				leads := 0
				for _, e := range w.story() {
					if strings.HasSuffix(e.What, "leads") {
						leads++
					}
				}
				if leads != 2 {
					t.Errorf("%d terms", leads)
				}
				again.mu.Lock()
				again.err = nil
				again.mu.Unlock()
				w.until(5*time.Minute, "it is well again", func() bool { return told() == "" })
			})
		})
	}
}

// A lease starts over whenever etcd changes its leader: entries of the journal, and loads, end
// nonetheless, and not before their time.
func TestEntriesEndThoughEtcdChangesItsLeader(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.editShard(func(s *store.Shard) { s.Settings.EventsKept = store.Duration(3 * time.Hour) })
		leader, minutes := w.start("one"), 0
		w.apply(w.group("web", 2))
		w.up(2)
		lease, err := w.store.Grant(t.Context(), 3*time.Hour+45*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		load := store.PutLeased(w.keys.Load(time.Now(), "web"), store.Encode(store.Load{
			Schema: store.Schema, Group: "web",
		}), lease.ID)
		if _, err := w.store.Commit(t.Context(), store.Txn{Writes: []store.Write{load}}); err != nil {
			t.Fatal(err)
		}
		w.watchHistory(12*time.Hour, time.Hour, func() {
			if there := len(w.list(load.Key)) > 0; there && minutes > 360 || !there && minutes < 180 {
				t.Fatalf("after %d minutes a load is there: %t", minutes, there)
			}
			if minutes++; minutes%30 == 0 {
				w.db.Faults().ChangeLeader()
			}
			if minutes%50 == 0 {
				leader.stop()
				leader = w.start("one")
			}
			oldest := time.Now()
			for _, e := range w.journal() {
				if e.Record.At.Before(oldest) {
					oldest = e.Record.At
				}
			}
			switch age := time.Since(oldest); {
			case minutes > 180 && age < 3*time.Hour-50*time.Minute:
				t.Fatalf("after %d minutes the oldest entry is %s old", minutes, age)
			case age > 6*time.Hour:
				t.Fatalf("after %d minutes the oldest entry is %s old", minutes, age)
			}
		})
	})
}

// keepsLeases is a store that ends no lease for as long as err is set.
type keepsLeases struct {
	store.Store
	mu    sync.Mutex
	err   error
	tries int
}

func (s *keepsLeases) Revoke(ctx context.Context, id store.LeaseID) error {
	s.mu.Lock()
	err := s.err
	s.tries++
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.Store.Revoke(ctx, id)
}

// Overdue entries that cannot be deleted are one warning, and no load on etcd; once they can, they
// go.
//
// proves OBS-1
func TestEntriesThatCannotBeDeleted(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.editShard(func(s *store.Shard) { s.Settings.EventsKept = store.Duration(time.Hour) })
		book, d := newLogbook(), &keepsLeases{err: store.ErrUnknown}
		w.start("one", book.kept, func(_ *coordinator.Config, deps *coordinator.Deps) {
			d.Store, deps.Store = deps.Store, d
		})
		w.apply(w.group("web", 2))
		w.up(2)
		oldest := func() time.Duration {
			at := time.Now()
			for _, e := range w.journal() {
				if e.Record.At.Before(at) {
					at = e.Record.At
				}
			}
			return time.Since(at)
		}
		for range 5 * 60 {
			w.db.Faults().ChangeLeader() // the leases start over
			w.pass(time.Minute)
		}
		d.mu.Lock()
		tries := d.tries
		d.err = nil
		d.mu.Unlock()
		if oldest() < 4*time.Hour || tries < 2 || tries > 5*60/5+1 {
			t.Errorf("the oldest entry is %s old, after %d tries", oldest(), tries)
		}
		warned := count(book.since(0, slog.LevelWarn), slog.LevelWarn,
			"overdue journal entries are kept: they could not be deleted", "error")
		if len(warned) != 1 || warned[store.ErrUnknown.Error()] != 1 {
			t.Errorf("warned of %v", warned)
		}
		w.until(6*time.Minute, "overdue entries are gone", func() bool { return oldest() < 3*time.Hour })
	})
}
