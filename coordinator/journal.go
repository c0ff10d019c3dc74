package coordinator

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// journal writes entries below events/, on shared leases: one per hour, so that the entries of an
// hour expire together, or one per shorter time if entries are not kept for long.
type journal struct {
	r *Replica

	mu    sync.Mutex
	lease store.Lease
	until time.Time // the lease takes no entries from then on
	last  time.Time // of the last entry
}

func newJournal(r *Replica) *journal { return &journal{r: r} }

// entry completes an entry and returns the write that records it.
func (j *journal) entry(ctx context.Context, e store.JournalEntry) (store.Write, error) {
	lease, err := j.leaseNow(ctx)
	if err != nil {
		return store.Write{}, err
	}
	id := make([]byte, 4)
	if _, err := rand.Read(id); err != nil {
		return store.Write{}, err
	}
	e.Schema, e.By, e.Evidence = store.Schema, j.r.cfg.ID, reason.Evidence(&e)
	if e.At.IsZero() {
		e.At = j.now()
	}
	return store.PutLeased(j.r.keys.Event(e.At, hex.EncodeToString(id)), store.Encode(e), lease), nil
}

// now returns the time, always later than the previous entry's: entries are read in the order
// in which they were made, however coarse the clock. A clock that was set back and stays so is
// believed.
func (j *journal) now() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now().UTC().Round(0) // without the monotonic clock, as readers will compare it
	if ahead := j.last.Sub(now); ahead >= 0 && ahead < time.Second {
		now = j.last.Add(1)
	}
	j.last = now
	return now
}

// commit commits a transaction together with its entries.
func (j *journal) commit(ctx context.Context, txn store.Txn, entries ...store.JournalEntry) (store.Revision, error) {
	txn.Writes = slices.Clone(txn.Writes)
	for _, entry := range entries {
		w, err := j.entry(ctx, entry)
		if err != nil {
			return 0, fmt.Errorf("write journal: %w", err)
		}
		txn.Writes = append(txn.Writes, w)
	}
	rev, err := j.r.deps.Store.Commit(ctx, txn)
	if errors.Is(err, store.ErrLeaseGone) {
		j.renewLease()
	}
	return rev, err
}

// write records an entry that belongs to no transaction. An entry that cannot be written is logged
// and lost.
func (j *journal) write(ctx context.Context, e store.JournalEntry) {
	_, err := j.commit(ctx, store.Txn{}, e)
	if err != nil && ctx.Err() == nil {
		j.r.log.Warn("journal entry lost", "rule", e.Rule, "instance", e.Instance, "what", e.What, "error", err)
	}
}

func (j *journal) leaseNow(ctx context.Context) (store.LeaseID, error) {
	j.mu.Lock()
	lease, until := j.lease, j.until
	j.mu.Unlock()
	// A lease of before events_kept grew is too short: gone notes would end before they may (SAFE-15).
	if lease.ID != 0 && time.Now().Before(until) && lease.TTL >= j.lasts() {
		return lease.ID, nil
	}
	// Not under the lock: a caller waits for etcd only as long as its own call takes. A lease that
	// is granted twice does no harm.
	lease, err := j.r.deps.Store.Grant(ctx, j.lasts())
	if err != nil {
		return 0, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lease, j.until = lease, time.Now().Add(j.share())
	return lease.ID, nil
}

// renewLease makes the next entry take a new lease: the present one is gone.
func (j *journal) renewLease() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lease = store.Lease{}
}

// share returns for how long a lease takes further entries.
func (j *journal) share() time.Duration { return min(time.Hour, j.kept()/4) }

// lasts returns how long the lease of an entry lasts.
func (j *journal) lasts() time.Duration { return j.kept() + j.share() }

func (j *journal) kept() time.Duration {
	kept := store.DefaultShardSettings().EventsKept.D()
	j.r.cache.View(func(c *cache.Content) {
		if c.Shard.Present() {
			kept = c.Shard.Record.Settings.EventsKept.D()
		}
	})
	return kept
}
