package tracing

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/store"
)

const (
	// reads is how far back a new leader reads, for healings that began under an earlier one.
	reads = time.Hour
	// repeats is the time before the previous leader's end whose spans a new leader sends again:
	// the previous leader may have died with them in its queue.
	repeats  = 10 * time.Second
	partSize = 1_000 // entries that one request reads
	retry    = 2 * time.Second
)

// Follower sends how instances are healed, while its replica leads.
type Follower struct {
	Store   store.Store
	Keys    store.Keys
	ShardID string
	Sender  *Sender
	// Silent returns for how long there may have been no leader before.
	Silent time.Duration
}

// Run follows the journal until ctx ends. A failure of the store only delays it.
func (f *Follower) Run(ctx context.Context) {
	p := progress{from: time.Now().Add(-f.Silent - repeats)}
	for {
		_ = f.follow(ctx, &p) // the cache reports that etcd cannot be reached
		wait := time.NewTimer(retry)
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
	}
}

// progress decides which entries are new: later than done or, in the first listing, made after
// from. Times count only there: they come from clocks that may be set back, which revisions never
// are.
type progress struct {
	from time.Time
	done store.Revision // 0: the first listing is not complete
}

func (p *progress) isNew(kv store.KV, at time.Time) bool {
	if p.done == 0 {
		return at.After(p.from)
	}
	return kv.Created > p.done
}

// follow reads recent entries and then new ones, until that fails.
func (f *Follower) follow(ctx context.Context, p *progress) error {
	found := newHealings(f.ShardID)
	at, next := store.Revision(0), f.Keys.EventsFrom(time.Now().Add(-reads))
	for next != "" {
		part, err := f.Store.ListPart(ctx, f.Keys.Of(store.KindEvents), next, partSize, at)
		if err != nil {
			return err
		}
		for _, kv := range part.KVs {
			f.take(found, kv, p)
		}
		at, next = part.Revision, part.Next
	}
	p.done = at
	return store.Changes(ctx, f.Store, f.Keys.Of(store.KindEvents), at+1, func(b store.Batch) error {
		for _, e := range b.Events {
			if !e.Deleted {
				f.take(found, e.KV, p)
			}
		}
		p.done = b.Revision
		return nil
	})
}

// take takes an entry, and sends the spans that it ends unless they were sent.
func (f *Follower) take(found *healings, kv store.KV, p *progress) {
	v, err := store.Decode[store.JournalEntry](kv)
	if err != nil {
		return
	}
	spans := found.follow(&v.Record)
	if !p.isNew(kv, v.Record.At) {
		return
	}
	for _, s := range spans {
		f.Sender.send(s)
	}
}
