package coordinator_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/store"
)

// compactions is a store in which compactions are counted, and refused if err is set.
type compactions struct {
	store.Store
	mu    sync.Mutex
	times []time.Time
	err   error
}

func (c *compactions) Compact(ctx context.Context, before store.Revision) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times = append(c.times, time.Now())
	if c.err != nil {
		return c.err
	}
	return c.Store.Compact(ctx, before)
}

func (c *compactions) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.times)
}

// counted has a replica's compactions go through c.
func (c *compactions) counted(_ *coordinator.Config, deps *coordinator.Deps) {
	c.Store, deps.Store = deps.Store, c
}

// reads says whether etcd still keeps a revision.
func (w *world) reads(at store.Revision) bool {
	_, err := w.store.List(w.t.Context(), w.keys.Shard(), at)
	if err != nil && !errors.Is(err, store.ErrCompacted) {
		w.t.Fatal(err)
	}
	return err == nil
}

// watchHistory passes time, and sees that the last keep of history can be read all the while. It returns for how long history was kept at most.
func (w *world) watchHistory(d, keep time.Duration, each func()) (most time.Duration) {
	w.t.Helper()
	type past struct {
		at  time.Time
		rev store.Revision
	}
	var pasts []past
	for end := time.Now().Add(d); time.Now().Before(end); w.pass(time.Minute) {
		each()
		pasts = append(pasts, past{time.Now(), w.revision()})
		for len(pasts) > 0 && !w.reads(pasts[0].rev) {
			if age := time.Since(pasts[0].at); age < keep {
				w.t.Fatalf("history of %s was compacted", age)
			}
			pasts = pasts[1:]
		}
		most = max(most, time.Since(pasts[0].at))
	}
	return most
}

func TestHistoryIsCompactedWhereNobodyElseDoes(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		if most := w.watchHistory(6*time.Hour, time.Hour, func() {}); most > 90*time.Minute {
			t.Errorf("history was kept for %s", most)
		}
	})
}

// A new leader takes up what the one before has counted: however often they change, history does not grow.
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

// Who compacts sooner is left alone.
func TestHistoryIsLeftToWhoeverCompactsIt(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		c := &compactions{}
		w.start("one", c.counted)
		var before []store.Revision
		w.watchHistory(4*time.Hour, 0, func() {
			if before = append(before, w.revision()); len(before) > 50 {
				if err := w.db.Faults().Compact(before[0]); err != nil && !errors.Is(err, store.ErrCompacted) {
					t.Fatal(err)
				}
				before = slices.Delete(before, 0, 1)
			}
		})
		if n := c.count(); n > 0 {
			t.Errorf("it was compacted %d times", n)
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
					t.Errorf("%d tenures", leads)
				}
				again.mu.Lock()
				again.err = nil
				again.mu.Unlock()
				w.until(5*time.Minute, "it is well again", func() bool { return told() == "" })
			})
		})
	}
}

// A lease begins anew whenever etcd changes its leader: entries of the journal end nonetheless, and not before their time.
func TestEntriesEndThoughEtcdChangesItsLeader(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.editShard(func(s *store.Shard) { s.Settings.EventsKept = store.Duration(3 * time.Hour) })
		leader, minutes := w.start("one"), 0
		w.apply(w.group("web", 2))
		w.up(2)
		w.watchHistory(12*time.Hour, time.Hour, func() {
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

// What cannot be, written by hand, is as if nothing was written: that is what status says too.
func TestHistoryIsKeptForAsLongAsUsualIfTheShardAsksForTooLittle(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		c := &compactions{}
		w.start("one", c.counted)
		w.pass(time.Minute)
		w.editShard(func(s *store.Shard) { s.Settings.CompactAfter = ptr(store.Duration(time.Second)) })
		w.pass(50 * time.Minute)
		if n := c.count(); n > 0 {
			t.Errorf("it was compacted %d times", n)
		}
	})
}
