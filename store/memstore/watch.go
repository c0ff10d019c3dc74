package memstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

const (
	progressEvery = time.Second
	batchEvents   = 1000 // about how many a batch holds, when many are waiting
)

// watch is a client's watch of a prefix. What it has not delivered it reads from the history, so
// that commits need not wait for it.
type watch struct {
	store   *Store
	prefix  string
	batches chan store.Batch
	wake    chan struct{} // holds one token: look again

	// Under the database's lock:
	from     store.Revision // the first revision that was not looked at
	saved    []store.Batch  // delivered first: what was due when the history was compacted
	progress bool           // a notice is due
	timer    Timer          // of the next notice
}

// Watch follows the contract. A watch from 0 begins with the next revision.
func (s *Store) Watch(ctx context.Context, prefix string, from store.Revision) <-chan store.Batch {
	w := &watch{
		store: s, prefix: prefix, from: from,
		batches: make(chan store.Batch), wake: make(chan struct{}, 1),
	}
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	if s.db.closed {
		close(w.batches)
		return w.batches
	}
	if from <= 0 {
		w.from = s.db.history.revision + 1
	}
	s.db.watches[w] = struct{}{}
	w.tick()
	s.db.running.Go(func() { w.run(ctx) })
	w.awake()
	return w.batches
}

// run delivers until ctx ends, the database is closed, or the watch has failed.
func (w *watch) run(ctx context.Context) {
	db := w.store.db
	defer close(w.batches)
	defer func() {
		db.mu.Lock()
		defer db.mu.Unlock()
		delete(db.watches, w)
		w.timer.Stop()
	}()
	for {
		batch, due := w.next()
		if !due {
			select {
			case <-w.wake:
				continue
			case <-ctx.Done():
				return
			case <-db.ended:
				return
			}
		}
		select {
		case w.batches <- batch:
		case <-ctx.Done():
			return
		case <-db.ended:
			return
		}
		if batch.Err != nil {
			return
		}
	}
}

// next returns the batch that is due, or false.
func (w *watch) next() (store.Batch, bool) {
	db := w.store.db
	db.mu.Lock()
	defer db.mu.Unlock()
	if w.muted() {
		return store.Batch{}, false
	}
	if len(w.saved) > 0 {
		batch := w.saved[0]
		w.saved = w.saved[1:]
		return batch, true
	}
	return w.collect()
}

// collect takes the next batch from the history. The database's lock is held.
func (w *watch) collect() (store.Batch, bool) {
	h := &w.store.db.history
	if w.from < h.compacted {
		return store.Batch{
			Revision: w.from - 1,
			Err: fmt.Errorf("watch %s from revision %d: %w up to %d", w.prefix, w.from, store.ErrCompacted,
				h.compacted),
		}, true
	}
	events, upTo := h.changes(w.prefix, w.from, batchEvents)
	w.from = max(w.from, upTo+1)
	if len(events) == 0 && !w.progress {
		return store.Batch{}, false
	}
	w.progress = false
	return store.Batch{Events: events, Revision: upTo}, true
}

// save keeps what is due, before the history it would be read from is compacted. A muted watch
// saves nothing: it will find its revision compacted. The database's lock is held.
func (w *watch) save() {
	if w.muted() {
		return
	}
	for w.from <= w.store.db.history.revision {
		batch, due := w.collect()
		if due {
			w.saved = append(w.saved, batch)
		}
		if batch.Err != nil {
			return
		}
	}
}

// muted reports whether a fault keeps the watch from delivering. The database's lock is held.
func (w *watch) muted() bool { return w.store.db.frozen || w.store.cut || w.store.stalled }

// concerns reports whether any of the events is below the watch's prefix.
func (w *watch) concerns(events []store.Event) bool {
	for _, e := range events {
		if strings.HasPrefix(e.KV.Key, w.prefix) {
			return true
		}
	}
	return false
}

// awake makes the watch look again.
func (w *watch) awake() {
	select {
	case w.wake <- struct{}{}:
	default: // it has not looked since the last time: it will see everything
	}
}

// tick asks for the next notice of progress. The database's lock is held.
func (w *watch) tick() {
	w.timer = w.store.db.clock.AfterFunc(progressEvery, func() {
		w.store.db.mu.Lock()
		defer w.store.db.mu.Unlock()
		if _, watching := w.store.db.watches[w]; !watching || w.store.db.closed {
			return
		}
		w.progress = true
		w.awake()
		w.tick()
	})
}
