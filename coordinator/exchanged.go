package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A restored or exchanged etcd may be older than the machines: the shard is held before anything is
// decided (SAFE-12).

const restoredAdvice = "; it may have been restored from a snapshot: compare the instances with " +
	"their machines before the release"

// checkStore holds the shard if etcd is another, or older, than what this replica knows, or than
// when a leader last worked. It precedes everything else in a term, and records what etcd is now,
// so that a release stands.
func (r *Replica) checkStore(ctx context.Context, fence store.Fence) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	if _, err := r.lookForShard(ctx); err != nil {
		var missing *missingError
		if errors.As(err, &missing) {
			r.wait(missing.why) // the cache will show it too
		}
		return err
	}
	kv, err := r.deps.Store.Get(ctx, r.keys.Served())
	if errors.Is(err, store.ErrNotFound) {
		return nil // no leader ever worked here
	}
	if err != nil {
		return fmt.Errorf("read served: %w", err)
	}
	v, err := r.deps.Store.Vitals(ctx)
	if err != nil {
		return fmt.Errorf("read vitals: %w", err)
	}
	served, err := store.Decode[store.Served](kv)
	if err != nil {
		return nil // the cache knows it as unreadable
	}
	why := served.Record.Exchanged(v)
	if why == "" {
		return nil
	}
	served.Record.Cluster, served.Record.Revision, served.Record.History = v.ClusterName(), v.Revision, nil
	served.Record.Journal, served.Record.Since = nil, time.Now().UTC()
	return r.hold(ctx, holdAnyway, why, []store.Condition{fence.Condition(), served.Unchanged()},
		store.Put(served.Key, store.Encode(served.Record)))
}

// holding says when hold writes.
type holding int

const (
	// holdExchanged: while etcd is not the one that this replica knows. If another replica has put
	// the shard on hold for it, this one only updates what it knows.
	holdExchanged holding = iota
	// holdUnlessHeld: also if etcd is, unless the shard is on hold. A leader has a reason of its own.
	holdUnlessHeld
	// holdAnyway: in any case, with what else the leader writes.
	holdAnyway
)

// hold puts the shard on hold, unless it is, and starts another generation, so that replicas that
// learn of the exchange later do not hold it again after its release. A leader passes its fence as
// a condition.
func (r *Replica) hold(
	ctx context.Context, when holding, why string, conditions []store.Condition, writes ...store.Write,
) error {
	kv, err := r.deps.Store.Get(ctx, r.keys.Shard())
	if err != nil {
		return fmt.Errorf("read shard: %w", err)
	}
	shard, err := store.Decode[store.Shard](kv)
	if err != nil {
		return err
	}
	vitals, err := r.deps.Store.Vitals(ctx)
	if err != nil {
		return fmt.Errorf("read vitals: %w", err)
	}
	known := r.known.get()
	if known.ShardID != "" && shard.Record.ID != known.ShardID {
		return &missingError{shardOther(known, shard.Record.ID)}
	}
	held := shard.Record.Hold != nil
	if known.exchanged(shard.Record, vitals) != "" || when == holdAnyway || when == holdUnlessHeld && !held {
		shard.Record.Generation = max(shard.Record.Generation, known.Generation) + 1
		entry := store.JournalEntry{
			Rule: "SAFE-12",
			What: "the shard was on hold already when etcd was found exchanged", Why: why, Revision: kv.Modified,
		}
		if !held {
			shard.Record.Hold = &store.Hold{By: "leasehold", Why: why + restoredAdvice, At: time.Now().UTC()}
			entry.What, entry.Why = "shard put on hold", shard.Record.Hold.Why
		}
		write, err := r.journal.entry(ctx, entry)
		if err != nil {
			return fmt.Errorf("write journal: %w", err)
		}
		conditions = append(conditions, shard.Unchanged())
		writes = append(writes, store.Put(shard.Key, store.Encode(shard.Record)), write)
		if _, err = r.deps.Store.Commit(ctx, store.Txn{Conditions: conditions, Writes: writes}); err != nil {
			return fmt.Errorf("hold shard: %w", err)
		}
		if held {
			r.log.Warn("etcd was exchanged, and the shard is on hold already", "why", why)
		} else {
			r.log.Warn("shard put on hold", "why", why)
		}
	}
	r.known.learn(shard.Record, vitals)
	r.saveKnown()
	return nil
}

// exchanged puts the shard on hold because etcd changed while this replica ran. Every replica that
// notices the change tries to, leader or not, until the shard is on hold.
func (r *Replica) exchanged(ctx context.Context, what string) {
	said := ""
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(ctx, commitTimeout)
		err := r.hold(call, holdExchanged, what, nil)
		cancel()
		var missing *missingError
		if err == nil || errors.Is(err, store.ErrNotFound) || errors.As(err, &missing) {
			return // or etcd does not hold the shard at all: then nothing is decided
		}
		if said != err.Error() && ctx.Err() == nil {
			said = err.Error()
			r.log.Error("etcd was exchanged, and the shard could not be put on hold: trying again", "why", what,
				"error", err)
		}
		r.journal.renewLease() // it belongs to another etcd
		select {
		case <-ctx.Done():
		case <-time.After(vitalsEvery):
		}
	}
}
