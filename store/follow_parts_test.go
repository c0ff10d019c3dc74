package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
)

// parted is a store that lists in parts of two keys, and in which something happens after each.
type parted struct {
	store.Store
	parts int
	after func(ctx context.Context, parts int) error // may fail the part
}

func (p *parted) ListPart(ctx context.Context, prefix, from string, _ int, at store.Revision) (store.Part, error) {
	part, err := p.Store.ListPart(ctx, prefix, from, 2, at)
	if p.parts++; err == nil {
		err = p.after(ctx, p.parts)
	}
	return part, err
}

// fillShard makes a shard of so many instances, and of a group.
func fillShard(t *testing.T, s store.Store, instances int) {
	t.Helper()
	put(t, s, shard.Group("web"), "web")
	put(t, s, shard.Shard(), "shard")
	for i := range instances {
		put(t, s, shard.Instance(fmt.Sprintf("web-%02d", i)), fmt.Sprint(i))
	}
}

func TestFollowListsAtOneRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t).Connect()
		fillShard(t, s, 7)
		p, wanted, stop := startFollow(t, &parted{Store: s, after: func(_ context.Context, parts int) error {
			put(t, s, shard.Group("web"), fmt.Sprint(parts))
			put(t, s, shard.Instance("web-03"), fmt.Sprint(parts))
			put(t, s, shard.Instance(fmt.Sprintf("web-04-%d", parts)), "made meanwhile")
			return nil
		}})
		p.showsAll(s, wanted...)
		if now := p.now(); now.resets != 1 || len(now.interrupted) != 0 {
			t.Errorf("%d resets, interrupted by %v", now.resets, now.interrupted)
		}
		stop()
	})
}

// A large shard in a slow store: each part has its time, however long all take together.
func TestFollowReadsForAsLongAsPartsCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t).Connect()
		fillShard(t, s, 20)
		p, wanted, stop := startFollow(t, &parted{Store: s, after: func(context.Context, int) error {
			pass(20 * time.Second)
			return nil
		}})
		pass(5 * time.Minute) // twelve parts take four
		synctest.Wait()
		p.showsAll(s, wanted...)
		if now := p.now(); now.resets != 1 || len(now.interrupted) != 0 {
			t.Errorf("%d resets, interrupted by %v", now.resets, now.interrupted)
		}
		stop()
	})
}

// One part that does not come is given up, and what came before it is void.
func TestFollowGivesUpAPartThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t).Connect()
		fillShard(t, s, 7)
		begun := time.Now()
		p, wanted, stop := startFollow(t, &parted{Store: s, after: func(ctx context.Context, parts int) error {
			if parts != 3 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}})
		pass(time.Minute)
		synctest.Wait()
		p.showsAll(s, wanted...)
		now := p.now()
		if now.resets != 1 || len(now.interrupted) != 1 || !errors.Is(now.interrupted[0], context.DeadlineExceeded) ||
			now.lastBreak.Sub(begun) != 30*time.Second {
			t.Errorf("%d resets, interrupted after %s by %v", now.resets, now.lastBreak.Sub(begun), now.interrupted)
		}
		stop()
	})
}

// Where the revision is compacted between two parts all is read again, and it is said why.
func TestFollowBeginsAnewWhereCompactionOvertakesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newMemory(t)
		s := db.Connect()
		fillShard(t, s, 7)
		p, wanted, stop := startFollow(t, &parted{Store: s, after: func(_ context.Context, parts int) error {
			if parts == 3 || parts == 5 {
				put(t, s, shard.Instance("web-00"), "written meanwhile")
				return db.Faults().Compact(0)
			}
			return nil
		}})
		pass(10 * time.Second)
		synctest.Wait()
		p.showsAll(s, wanted...)
		now := p.now()
		if now.resets != 1 || len(now.interrupted) != 2 || !errors.Is(now.interrupted[0], store.ErrCompacted) ||
			!strings.Contains(now.interrupted[0].Error(), "after 5 keys and 0s, all is read again") {
			t.Errorf("%d resets, interrupted by %v", now.resets, now.interrupted)
		}
		stop()
	})
}

func TestFollowEndsBetweenTwoParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t).Connect()
		fillShard(t, s, 7)
		p := newCache(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped")
		lister := &parted{Store: s, after: func(_ context.Context, parts int) error {
			if parts == 3 {
				cancel(stopped)
			}
			return nil
		}}
		if err := store.Follow(ctx, lister, shard.Prefix(), nil, p); !errors.Is(err, stopped) {
			t.Errorf("follow returned %v", err)
		}
		if now := p.now(); now.resets != 0 || len(now.interrupted) != 0 || lister.parts > 4 {
			t.Errorf("%d resets, interrupted by %v, %d parts were asked for", now.resets, now.interrupted, lister.parts)
		}
	})
}
