package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// A replica whose etcd does not hold the shard that it knows decides nothing, creates no shard, and
// waits (SAFE-15): the data may be lost, and every machine would look unknown.

// errWaits ends a term, or a candidacy, when the store no longer holds the shard.
var errWaits = errors.New("etcd does not hold the shard that this replica knows")

const waitingAdvice = "; restore etcd's data from a snapshot, or, if there is none, see leasehold recover --help"

// shardMissing returns why a replica that knows this must wait when there is no record of the
// shard.
func shardMissing(k Known, name string) string {
	if k.ShardID == "" {
		return fmt.Sprintf("there is no shard %s in this etcd: leasehold init creates it", name)
	}
	return fmt.Sprintf("shard %s (ID %s) is missing from etcd, which held it before%s", name, k.ShardID, waitingAdvice)
}

// shardOther returns why a replica must wait when the record belongs to another shard.
func shardOther(k Known, id string) string {
	return fmt.Sprintf("etcd holds another shard of this name (ID %s) than this replica knows (ID %s)%s", id, k.ShardID,
		waitingAdvice)
}

// wait records why nothing may be decided, or with "" that the store holds the shard again.
func (r *Replica) wait(why string) {
	var waits *store.Waits
	if why != "" {
		k := r.known.get()
		waits = &store.Waits{Why: why, ShardID: k.ShardID, Cluster: k.Cluster, Highest: k.Revision}
		if k.ShardID == "" && r.cfg.AwaitsBackup {
			waits.Restore = true
			waits.Why = fmt.Sprintf("there is no shard %s in this etcd, which was made for one from a backup: "+
				"leasehold restore FILE brings it back", r.cfg.Shard)
		}
	}
	r.mu.Lock()
	same := waits == nil && r.waits == nil || waits != nil && r.waits != nil && waits.Why == r.waits.Why
	if !same {
		r.waits = waits
		close(r.served)
		r.served = make(chan struct{})
	}
	r.mu.Unlock()
	if same {
		return
	}
	if waits != nil {
		r.log.Error("waiting: nothing is decided", "why", waits.Why)
	} else {
		r.log.Info("etcd holds the shard: serving it")
	}
	r.pokePublish()
}

// waiting returns why nothing is decided now, and a channel that is closed when that changes.
func (r *Replica) waiting() (*store.Waits, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waits, r.served
}

// whileServing waits until the store holds the shard. The returned context ends, with errWaits,
// when the store loses it; the caller must call stop.
func (r *Replica) whileServing(ctx context.Context) (serving context.Context, stop func(), err error) {
	for {
		waits, changed := r.waiting()
		if waits != nil {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return nil, nil, context.Cause(ctx)
			}
		}
		serving, end := context.WithCancelCause(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			select {
			case <-changed:
				end(errWaits)
			case <-serving.Done():
			}
		}()
		return serving, func() {
			end(nil)
			<-done
		}, nil
	}
}

// findShard waits until the store holds the shard that this replica knows or, if it knows none,
// any.
func (r *Replica) findShard(ctx context.Context) (store.Shard, error) {
	announcing, stop := context.WithCancel(ctx)
	var announced sync.WaitGroup
	defer announced.Wait()
	defer stop()
	wait := 100 * time.Millisecond
	said, tells := "", false
	for {
		shard, err := r.lookForShard(ctx)
		var missing *missingError
		switch {
		case err == nil:
			r.wait("")
			return shard, nil
		case errors.Is(err, store.ErrSchema) || errors.Is(err, store.ErrDenied):
			return shard, err
		case errors.As(err, &missing):
			r.wait(missing.why)
			if !tells {
				tells = true
				announced.Go(func() { r.announceWaiting(announcing) })
			}
		case said != err.Error() && ctx.Err() == nil:
			said = err.Error()
			r.log.Error("etcd does not answer, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return shard, context.Cause(ctx)
		case <-time.After(wait):
			wait = min(2*wait, vitalsEvery)
		}
	}
}

// missingError means that etcd answers, and does not hold the shard.
type missingError struct{ why string }

func (e *missingError) Error() string { return e.why }

// lookForShard reads the shard's record. If etcd's data is older than what the replica knows, the
// shard is on hold when it returns (SAFE-12).
func (r *Replica) lookForShard(ctx context.Context) (store.Shard, error) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	known := r.known.get()
	kv, err := r.deps.Store.Get(ctx, r.keys.Shard())
	if errors.Is(err, store.ErrNotFound) {
		return store.Shard{}, &missingError{shardMissing(known, r.cfg.Shard)}
	}
	if err != nil {
		return store.Shard{}, fmt.Errorf("read %s: %w", r.keys.Shard(), err)
	}
	v, err := store.Decode[store.Shard](kv)
	if err == nil && known.ShardID != "" && v.Record.Replaces == known.ShardID && v.Record.ID != known.ShardID {
		known.ShardID = "" // it knew an empty shard, in whose place an operator restored this one
	}
	switch {
	case err == nil && v.Record.ID == "":
		err = fmt.Errorf("read %s: it has no ID", kv.Key)
	case err == nil && known.ShardID != "" && v.Record.ID != known.ShardID:
		err = &missingError{shardOther(known, v.Record.ID)}
	}
	if err != nil {
		return store.Shard{}, err
	}
	vitals, err := r.deps.Store.Vitals(ctx)
	if err != nil {
		return store.Shard{}, fmt.Errorf("read vitals: %w", err)
	}
	if why := known.exchanged(v.Record, vitals); why != "" {
		if err := r.hold(ctx, holdExchanged, why, nil); err != nil {
			return store.Shard{}, err
		}
	} else {
		r.known.learn(v.Record, vitals)
	}
	r.saveKnown()
	return v.Record, nil
}

// saveKnown keeps what is known on disk. A disk that fails is no reason to stop: its content is
// only older.
func (r *Replica) saveKnown() {
	if err := r.known.save(); err != nil {
		r.log.Error("what this replica knows of its etcd could not be saved: after a restart it may not notice that data "+
			"was lost", "error", err)
	}
}

// announceWaiting publishes in replicas/<id> why the replica waits, until ctx ends.
func (r *Replica) announceWaiting(ctx context.Context) {
	since := time.Now().UTC()
	sessions := store.NewSessions(r.deps.Store, r.cfg.SessionTTL)
	for ctx.Err() == nil {
		_ = sessions.Run(ctx, func(ctx context.Context, lease store.Lease) error {
			if err := r.announce(ctx, lease, since); err != nil {
				return err
			}
			r.keepAnnouncing(ctx, lease, since)
			return context.Cause(ctx)
		}) // etcd is checked again anyway
		select {
		case <-ctx.Done():
		case <-time.After(vitalsEvery):
		}
	}
}

// shardWatcher notices when the store loses the shard, and when it is back.
type shardWatcher struct {
	r   *Replica
	id  string
	end func(cause error) // ends the replica
}

// errReplaced ends a replica that served an empty shard: it starts again with the restored one.
var errReplaced = errors.New("another shard was restored in the place of the empty one that this replica served: " +
	"it starts again with that")

func (w *shardWatcher) check(c *cache.Content) {
	switch {
	case c.Shard.Present() && c.Shard.Record.ID == w.id:
		w.r.wait("")
	case c.Shard.Present() && c.Shard.Record.Replaces == w.id:
		w.end(errReplaced)
	case c.Shard.Present():
		w.r.wait(shardOther(w.r.known.get(), c.Shard.Record.ID))
	default:
		w.r.wait(shardMissing(w.r.known.get(), w.r.cfg.Shard))
	}
}

// Listed checks the shard's record.
func (w *shardWatcher) Listed(c *cache.Content) { w.check(c) }

// Changed checks the shard's record if it has changed.
func (w *shardWatcher) Changed(c *cache.Content, changes []cache.Change) {
	for _, change := range changes {
		if change.Kind == store.KindShard {
			w.check(c)
			return
		}
	}
}

// Interrupted is ignored: the shard has not changed.
func (*shardWatcher) Interrupted(error) {}
