package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

// told is what a follower has received.
type told struct {
	stale       bool // interrupted, or never begun
	revision    store.Revision
	values      map[string]string
	resets      int
	batches     int
	interrupted []error
	lastReset   time.Time
	lastBreak   time.Time
}

// cache is a follower that keeps what it receives, and checks the order.
type cache struct {
	t     *testing.T
	apply func() // called in Apply, if set

	mu    sync.Mutex
	told  told
	parts []store.KV // since the last interruption
}

func newCache(t *testing.T) *cache { return &cache{t: t, told: told{stale: true}} }

// now returns what it has received so far.
func (p *cache) now() told {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.told
	now.values = maps.Clone(now.values)
	now.interrupted = slices.Clone(now.interrupted)
	return now
}

func (p *cache) Part(kvs []store.KV) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.told.stale {
		p.t.Error("a part without an interruption")
	}
	p.parts = append(p.parts, kvs...)
}

func (p *cache) Reset(rev store.Revision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := store.Listing{KVs: p.parts, Revision: rev}
	if !p.told.stale {
		p.t.Error("reset without an interruption")
	}
	p.told.stale = false
	p.told.resets++
	p.told.lastReset = time.Now()
	p.told.revision = l.Revision
	p.told.values = map[string]string{}
	last := ""
	for _, kv := range l.KVs {
		if kv.Key <= last || kv.Modified > l.Revision {
			p.t.Errorf("listing at %d has %+v after %s", l.Revision, kv, last)
		}
		last = kv.Key
		p.told.values[kv.Key] = string(kv.Value)
	}
}

func (p *cache) Apply(b store.Batch) {
	p.mu.Lock()
	if p.told.stale || b.Err != nil || b.Revision < p.told.revision {
		p.t.Errorf("at revision %d, stale %v: %+v", p.told.revision, p.told.stale, b)
	}
	for _, e := range b.Events {
		if e.KV.Modified <= p.told.revision || e.KV.Modified > b.Revision {
			p.t.Errorf("a change at %d in a batch from %d to %d", e.KV.Modified, p.told.revision, b.Revision)
		}
		if e.Deleted {
			delete(p.told.values, e.KV.Key)
		} else {
			p.told.values[e.KV.Key] = string(e.KV.Value)
		}
	}
	p.told.revision = b.Revision
	p.told.batches++
	p.mu.Unlock()
	if p.apply != nil {
		p.apply()
	}
}

func (p *cache) Interrupted(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.t.Error("interrupted without a reason")
	}
	p.told.stale, p.parts = true, nil
	p.told.interrupted = append(p.told.interrupted, err)
	p.told.lastBreak = time.Now()
}

// showsAll checks that the cache equals the store below the wanted prefixes.
func (p *cache) showsAll(s store.Store, wanted ...string) {
	p.t.Helper()
	now, want := p.now(), map[string]string{}
	for _, prefix := range wanted {
		listing, err := s.List(p.t.Context(), prefix, 0)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, kv := range listing.KVs {
			want[kv.Key] = string(kv.Value)
		}
		if now.revision != listing.Revision {
			p.t.Errorf("the cache is of revision %d, the store is at %d", now.revision, listing.Revision)
		}
	}
	if now.stale || !maps.Equal(now.values, want) {
		p.t.Errorf("the cache, stale %v, is %v, want %v", now.stale, now.values, want)
	}
}

// startFollow follows groups/, instances/ and the shard of the test's shard, until the returned
// function is called.
func startFollow(t *testing.T, s store.Store) (*cache, []string, func()) {
	p := newCache(t)
	wanted := []string{shard.Of(store.KindGroups), shard.Of(store.KindInstances), shard.Shard()}
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- store.Follow(ctx, s, shard.Prefix(), wanted, p) }()
	synctest.Wait()
	return p, wanted, func() {
		t.Helper()
		stopped := errors.New("stopped")
		cancel(stopped)
		if err := <-done; !errors.Is(err, stopped) {
			t.Errorf("follow returned %v", err)
		}
	}
}

func TestFollowKeepsACacheOfWhatIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t).Connect()
		put(t, s, shard.Shard(), "shard")
		put(t, s, shard.Group("web"), "1")
		put(t, s, shard.Event(time.Now(), "x"), "journal")
		put(t, s, store.KeysOf("other").Group("web"), "other")
		p, wanted, stop := startFollow(t, s)
		p.showsAll(s, wanted...)
		for i := range 50 {
			put(t, s, shard.Instance(fmt.Sprint(i%7)), fmt.Sprint(i))
			put(t, s, shard.Event(time.Now(), fmt.Sprint(i)), "journal")
			if i%5 == 0 {
				if _, err := s.Commit(t.Context(), store.Txn{Writes: []store.Write{
					store.Delete(shard.Instance(fmt.Sprint(i % 3))),
					store.Put(shard.Group("web"), []byte(fmt.Sprint(i))),
				}}); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			p.showsAll(s, wanted...) // its revision included, though the last write is not wanted
		}
		for key := range p.now().values {
			if strings.Contains(key, "/events/") || strings.Contains(key, "/other/") {
				t.Errorf("told of %s, which is not wanted", key)
			}
		}
		if p.now().resets != 1 || len(p.now().interrupted) != 0 {
			t.Errorf("%d resets, interrupted by %v", p.now().resets, p.now().interrupted)
		}
		stop()
	})
}

func TestFollowSeesProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t).Connect()
		p, wanted, stop := startFollow(t, s)
		put(t, s, store.KeysOf("other").Group("web"), "")
		pass(10 * time.Second)
		synctest.Wait()
		if p.now().batches < 9 {
			t.Errorf("%d batches in 10s without changes", p.now().batches)
		}
		p.showsAll(s, wanted...)
		stop()
	})
}

func TestFollowOfEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t).Connect()
		put(t, s, "/a", "1")
		p := newCache(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- store.Follow(ctx, s, "/", nil, p) }()
		synctest.Wait()
		put(t, s, "/b", "2")
		synctest.Wait()
		p.showsAll(s, "/")
		cancel()
		<-done
	})
}

// proves SAFE-3
func TestFollowListsAgainAfterAnInterruption(t *testing.T) {
	for name, test := range map[string]struct {
		strike func(t *testing.T, db *memstore.Database, s *memstore.Store)
		mend   func(db *memstore.Database, s *memstore.Store)
		why    error
	}{
		"watch silent": {
			func(_ *testing.T, _ *memstore.Database, s *memstore.Store) { s.Faults().StallWatches() },
			func(_ *memstore.Database, s *memstore.Store) { s.Faults().ReleaseWatches() },
			store.ErrUnavailable,
		},
		"cut off": {
			func(_ *testing.T, _ *memstore.Database, s *memstore.Store) { s.Faults().Cut() },
			func(_ *memstore.Database, s *memstore.Store) { s.Faults().Mend() },
			store.ErrUnavailable,
		},
		"frozen": {
			func(_ *testing.T, db *memstore.Database, _ *memstore.Store) { db.Faults().Freeze() },
			func(db *memstore.Database, _ *memstore.Store) { db.Faults().Thaw() },
			store.ErrUnavailable,
		},
		"compacted": {
			func(t *testing.T, db *memstore.Database, s *memstore.Store) {
				s.Faults().StallWatches()
				put(t, s, shard.Group("web"), "compacted")
				put(t, s, shard.Group("web"), "compacted too")
				if err := db.Faults().Compact(0); err != nil {
					t.Error(err)
				}
				s.Faults().ReleaseWatches()
			},
			func(*memstore.Database, *memstore.Store) {},
			store.ErrCompacted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newMemory(t)
				s, admin := db.Connect(), db.Connect()
				put(t, s, shard.Group("web"), "1")
				p, wanted, stop := startFollow(t, s)
				pass(10 * time.Second)
				synctest.Wait()
				test.strike(t, db, s)
				begun := time.Now()
				for len(p.now().interrupted) == 0 && time.Since(begun) < time.Minute {
					pass(10 * time.Millisecond)
					synctest.Wait()
				}
				if len(p.now().interrupted) == 0 || !errors.Is(p.now().interrupted[0], test.why) {
					t.Fatalf("interrupted by %v, want %v", p.now().interrupted, test.why)
				}
				if after := p.now().lastBreak.Sub(begun); after > 3*time.Second {
					t.Errorf("noticed after %s", after)
				}
				pass(10 * time.Second)
				test.mend(db, s)
				put(t, admin, shard.Group("web"), "2")
				pass(5 * time.Second) // more than the longest wait between attempts
				synctest.Wait()
				p.showsAll(admin, wanted...)
				if p.now().resets < 2 {
					t.Errorf("%d resets after %v", p.now().resets, p.now().interrupted)
				}
				stop()
			})
		})
	}
}

// broken is a store whose watches end at once, and that counts how often it is listed.
type broken struct {
	store.Store
	lists []time.Time
}

func (b *broken) ListPart(ctx context.Context, prefix, from string, most int, at store.Revision) (store.Part, error) {
	b.lists = append(b.lists, time.Now())
	return b.Store.ListPart(ctx, prefix, from, most, at)
}

func (b *broken) Watch(context.Context, string, store.Revision) <-chan store.Batch {
	closed := make(chan store.Batch)
	close(closed)
	return closed
}

func TestFollowBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &broken{Store: newMemory(t).Connect()}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		p := newCache(t)
		if err := store.Follow(ctx, s, "/", nil, p); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("follow returned %v", err)
		}
		if len(s.lists) < 30 || len(s.lists) > 70 {
			t.Errorf("listed %d times in a minute", len(s.lists))
		}
		if first := s.lists[1].Sub(s.lists[0]); first > 51*time.Millisecond {
			t.Errorf("listed again after %s", first)
		}
		for i := 1; i < len(s.lists); i++ {
			if wait := s.lists[i].Sub(s.lists[i-1]); wait > 2*time.Second+time.Millisecond ||
				wait < 25*time.Millisecond {
				t.Errorf("waited %s", wait)
			}
		}
	})
}

func TestFollowToleratesASlowFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t).Connect()
		p := newCache(t)
		p.apply = func() { pass(5 * time.Second) } // how long the follower takes
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- store.Follow(ctx, s, shard.Prefix(), nil, p) }()
		for i := range 100 {
			put(t, s, shard.Group(fmt.Sprint(i)), "")
			pass(100 * time.Millisecond)
		}
		pass(time.Minute)
		synctest.Wait()
		p.showsAll(s, shard.Prefix())
		if len(p.now().interrupted) != 0 {
			t.Errorf("its own slowness was taken for the watch's silence: %v", p.now().interrupted)
		}
		cancel()
		<-done
	})
}

func TestFollowIsQuickAgainOnceItWasWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newMemory(t)
		s := db.Connect()
		p, _, stop := startFollow(t, s)
		for range 10 {
			s.Faults().StallWatches()
			put(t, s, shard.Group("web"), "1")
			put(t, s, shard.Group("web"), "2")
			if err := db.Faults().Compact(0); err != nil {
				t.Fatal(err)
			}
			s.Faults().ReleaseWatches()
			pass(5 * time.Second)
			synctest.Wait()
			if now := p.now(); now.stale || now.lastReset.Sub(now.lastBreak) > 51*time.Millisecond {
				t.Errorf("stale %v, listed again after %s", now.stale, now.lastReset.Sub(now.lastBreak))
			}
		}
		if now := p.now(); len(now.interrupted) != 10 || now.resets != 11 {
			t.Errorf("%d resets, interrupted by %v", now.resets, now.interrupted)
		}
		stop()
	})
}
