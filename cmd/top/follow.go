package top

import (
	"context"
	"sync"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/observe"
	"github.com/leasehold/leasehold/coordinator/view"
	"github.com/leasehold/leasehold/store"
)

// follower keeps a shard in memory, at the cost of one watch for records and one for the journal.
type follower struct {
	views   *view.Source
	cache   *cache.Cache
	journal *journal.Memory
	dirty   chan struct{}
	done    <-chan struct{}
}

// follow reads the shard and follows it, until ctx ends and the returned function is called.
func follow(ctx context.Context, cfg Config, st store.Store) (f *follower, wait func()) {
	keys := store.KeysOf(cfg.Shard)
	f = &follower{
		cache: cache.New(keys), journal: journal.New(keys, journal.MaxEntries), dirty: make(chan struct{}, 1),
		done: ctx.Done(),
	}
	f.views = view.New(cfg.Shard, f.cache, f.journal)
	stop := f.cache.Listen(f)
	var all sync.WaitGroup
	all.Go(func() { _ = f.cache.Run(ctx, st) })
	all.Go(func() { _ = f.journal.Run(ctx, st) })
	all.Go(func() { observe.Run(ctx, f.views, "", cfg.Members) })
	all.Go(func() {
		for {
			moved := f.journal.Moved()
			f.touch()
			select {
			case <-ctx.Done():
				return
			case <-moved:
			}
		}
	})
	return f, func() {
		all.Wait()
		stop()
	}
}

// revision is the revision of the shard in memory.
func (f *follower) revision() (rev store.Revision) {
	f.cache.View(func(c *cache.Content) { rev = c.Revision })
	return rev
}

func (f *follower) touch() {
	select {
	case f.dirty <- struct{}{}:
	default: // a signal is pending
	}
}

// Listed implements cache.Listener, as the next two do.
func (f *follower) Listed(*cache.Content) { f.touch() }

// Changed signals a change that can be seen.
func (f *follower) Changed(_ *cache.Content, changes []cache.Change) {
	for _, c := range changes {
		if !c.Same {
			f.touch()
			return
		}
	}
}

// Interrupted signals that what is shown gets old.
func (f *follower) Interrupted(error) { f.touch() }
