package store_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
)

// counted is a store that counts what is read of it, and keeps its last watch.
type counted struct {
	store.Store
	reads   int
	watch   context.Context
	batches <-chan store.Batch
}

func (c *counted) Get(ctx context.Context, key string) (store.KV, error) {
	c.reads++
	return c.Store.Get(ctx, key)
}

func (c *counted) List(ctx context.Context, prefix string, at store.Revision) (store.Listing, error) {
	c.reads++
	return c.Store.List(ctx, prefix, at)
}

func (c *counted) Watch(ctx context.Context, prefix string, from store.Revision) <-chan store.Batch {
	c.watch, c.batches = ctx, c.Store.Watch(ctx, prefix, from)
	return c.batches
}

// A reader of changes that has seen enough leaves no watch behind.
func TestChangesEndTheirWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &counted{Store: newMemory(t).Connect()}
		at := put(t, s, shard.Group("web"), "1")
		enough := errors.New("enough")
		err := store.Changes(t.Context(), s, shard.Prefix(), at, func(store.Batch) error { return enough })
		if !errors.Is(err, enough) {
			t.Errorf("it ended with %v", err)
		}
		synctest.Wait()
		select {
		case _, open := <-s.batches:
			if open {
				t.Error("the watch still delivers")
			}
		default:
			t.Error("the watch goes on")
		}
		if s.watch.Err() == nil {
			t.Error("the watch's context goes on")
		}
	})
}

// A candidate that waits reads nothing until another one has left: replicas that wait do not load
// etcd.
func TestACandidateThatWaitsReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newMemory(t)
		leader := startElect(t, db.Connect(), "leader")
		leader.leads(t, db.Connect())
		s := &counted{Store: db.Connect()}
		waiting := startElect(t, s, "waiting")
		before := s.reads
		pass(10 * time.Second)
		startElect(t, db.Connect(), "another")
		pass(10 * time.Second)
		waiting.waits(t)
		if s.reads != before {
			t.Errorf("it read %d times while no one had left", s.reads-before)
		}
		if err := leader.fence.Resign(t.Context(), db.Connect()); err != nil {
			t.Fatal(err)
		}
		waiting.leads(t, db.Connect())
	})
}
