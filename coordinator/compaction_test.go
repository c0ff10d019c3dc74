package coordinator_test

import (
	"context"
	"errors"
	"slices"
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

// reads reports whether etcd still keeps a revision.
func (w *world) reads(at store.Revision) bool {
	_, err := w.store.List(w.t.Context(), w.keys.Shard(), at)
	if err != nil && !errors.Is(err, store.ErrCompacted) {
		w.t.Fatal(err)
	}
	return err == nil
}

// watchHistory passes time, and sees that the last keep of history can be read all the while. It
// returns for how long history was kept at most.
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
		if most := w.watchHistory(3*time.Hour, time.Hour, func() {}); most > 90*time.Minute {
			t.Errorf("history was kept for %s", most)
		}
	})
}

// The leader leaves compaction to another client that compacts sooner.
func TestHistoryIsLeftToAnotherCompactor(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		c := &compactions{}
		w.start("one", c.counted)
		var before []store.Revision
		w.watchHistory(2*time.Hour, 0, func() {
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
