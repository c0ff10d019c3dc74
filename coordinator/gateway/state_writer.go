package gateway

import (
	"context"
	"fmt"
	"sync"

	"github.com/leasehold/leasehold/store"
)

// How the states of streams are written.
const (
	statesPerTxn = store.MaxOps / 2 // in a transaction: each compares two keys
	stateWriters = 2                // concurrent transactions: what arrives meanwhile goes into the next
)

// stateWriter writes the states of many sessions in one transaction, for example when all agents of
// a dead replica connect here: batches are many times cheaper for etcd. Each part keeps its own
// conditions, and one that fails does not prevent the others. A single state is written alone, at
// once.
type stateWriter struct {
	g *Gateway

	mu      sync.Mutex
	waiting []*part
	writers int
}

// part is one session's write to one key, and its result.
type part struct {
	store.BatchPart
	done chan struct{} // closed when the part has its result

	taken, left bool // taken by a writer, and abandoned by the caller that queued it. The lock guards them
}

// commit is Store.Commit, batched with others.
func (w *stateWriter) commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	p := &part{BatchPart: store.BatchPart{Txn: txn}, done: make(chan struct{})}
	w.mu.Lock()
	w.waiting = append(w.waiting, p)
	if w.writers < stateWriters {
		if !w.g.spawn(w.write) {
			w.mu.Unlock()
			return 0, fmt.Errorf("%w: this replica stops", store.ErrUnavailable)
		}
		w.writers++
	}
	w.mu.Unlock()
	select {
	case <-p.done:
		return p.Revision, p.Err
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !p.taken {
		p.left = true
		return 0, fmt.Errorf("%w: %w", store.ErrUnavailable, context.Cause(ctx))
	}
	return 0, fmt.Errorf("%w: %w", store.ErrUnknown, context.Cause(ctx))
}

// write writes until nothing waits.
func (w *stateWriter) write() {
	for {
		parts := w.take()
		if len(parts) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(w.g.life, callTimeout)
		batch := make([]*store.BatchPart, len(parts))
		for i, p := range parts {
			batch[i] = &p.BatchPart
		}
		store.CommitBatch(ctx, w.g.deps.Store, batch)
		cancel()
		for _, p := range parts {
			close(p.done)
		}
	}
}

// take returns as many parts as fit a transaction, at most one for each key. If there are none, it
// takes the writer off the count.
func (w *stateWriter) take() []*part {
	w.mu.Lock()
	defer w.mu.Unlock()
	var parts, rest []*part
	keys := map[string]bool{}
	for _, p := range w.waiting {
		key := p.Txn.Writes[0].Key
		switch {
		case p.left:
		case len(parts) == statesPerTxn || keys[key]:
			rest = append(rest, p)
		default:
			p.taken, keys[key] = true, true
			parts = append(parts, p)
		}
	}
	if w.waiting = rest; len(parts) == 0 {
		w.writers--
	}
	return parts
}
