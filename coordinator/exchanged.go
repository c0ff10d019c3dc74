package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
)

// What a restored or exchanged etcd shows may be older than the machines: the shard holds itself then, before anything is decided on it
// (SAFE-12).

const restoredAdvice = "; it may have been restored from a snapshot: compare the instances with their machines before the release"

// checkStore holds the shard if etcd is another than when a leader was last at work. It comes before anything else in a tenure, and notes
// what etcd is now, so that a release stands.
func (r *Replica) checkStore(ctx context.Context, fence store.Fence) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	kv, err := r.deps.Store.Get(ctx, r.keys.Served())
	if errors.Is(err, store.ErrNotFound) {
		return nil // nobody was ever at work here
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
		return nil // it says nothing; the picture knows it as unreadable
	}
	why := served.Record.Exchanged(v)
	if why == "" {
		return nil
	}
	served.Record.Cluster, served.Record.Revision, served.Record.History = v.ClusterName(), v.Revision, nil
	served.Record.Journal = nil
	return r.hold(ctx, why, []store.Condition{fence.Condition(), served.Unchanged()}, store.Put(served.Key, store.Encode(served.Record)))
}

// hold puts the shard on hold, unless it is. What else is written is written in any case.
func (r *Replica) hold(ctx context.Context, why string, conditions []store.Condition, writes ...store.Write) error {
	kv, err := r.deps.Store.Get(ctx, r.keys.Shard())
	if err != nil {
		return fmt.Errorf("read shard: %w", err)
	}
	shard, err := store.Decode[store.Shard](kv)
	if err != nil {
		return err
	}
	if shard.Record.Hold == nil {
		shard.Record.Hold = &store.Hold{By: "leasehold", Why: why + restoredAdvice, At: time.Now().UTC()}
		entry, err := r.journal.entry(ctx, store.JournalEntry{Rule: "SAFE-12", What: "shard put on hold", Why: shard.Record.Hold.Why, Revision: kv.Modified})
		if err != nil {
			return fmt.Errorf("write journal: %w", err)
		}
		conditions = append(conditions, shard.Unchanged())
		writes = append(writes, store.Put(shard.Key, store.Encode(shard.Record)), entry)
		r.log.Warn("shard put on hold", "why", why)
	}
	if len(writes) == 0 {
		return nil
	}
	if _, err = r.deps.Store.Commit(ctx, store.Txn{Conditions: conditions, Writes: writes}); err != nil {
		return fmt.Errorf("hold shard: %w", err)
	}
	return nil
}

// exchanged holds the shard because etcd changed under our eyes. Every replica that sees it does so, leader or not, until it is on hold:
// across its own restart nobody could tell.
func (r *Replica) exchanged(ctx context.Context, what string) {
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(ctx, commitTimeout)
		err := r.hold(call, what, nil)
		cancel()
		if err == nil || errors.Is(err, store.ErrNotFound) {
			return // or there is no shard in it at all: then nothing is done
		}
		r.journal.renewLease() // that of another etcd
		select {
		case <-ctx.Done():
		case <-time.After(vitalsEvery):
		}
	}
}

// orphaned says why a shard without a record must begin on hold; "" if it is a fresh one. What operators write may be there before the first
// coordinator is, what leaders write may not.
func (r *Replica) orphaned(ctx context.Context) (why string, err error) {
	for _, kind := range []string{store.KindInstances, store.KindStatus} {
		first, err := r.deps.Store.ListPart(ctx, r.keys.Of(kind), "", 1, 0)
		if err != nil {
			return "", err
		}
		if n := len(first.KVs) + first.Behind; n > 0 {
			return fmt.Sprintf("the shard's record was missing, and there are %d keys below %s: their machines have the tag of another ID; "+
				"put the old record back, with the ID in their tags, before the release: else all of them are taken for gone", n, kind), nil
		}
	}
	return "", nil
}
