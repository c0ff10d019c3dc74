package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/leasehold/leasehold/store"
)

// How the states of streams are written.
const (
	togetherMost    = store.MaxOps / 2 // in a transaction: each compares two keys
	togetherWriters = 2                // transactions at the same time: what comes meanwhile goes into the next
)

// together writes what many sessions want written at the same moment in one transaction, such as when all agents of a replica that is gone come here:
// etcd takes those many times more cheaply. Each keeps its own conditions, and what does not hold for one keeps no other from being written. Whoever comes
// alone is written alone, at once.
type together struct {
	g *Gateway

	mu      sync.Mutex
	waiting []*part
	writers int
}

// part is what one session wants written to one key, and what became of it.
type part struct {
	txn  store.Txn
	done chan struct{} // closed when rev and err are what became of it
	rev  store.Revision
	err  error

	taken, left bool // by a writer; and by whoever wanted it. The lock guards them
}

// commit is Store.Commit, together with others.
func (t *together) commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	p := &part{txn: txn, done: make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, p)
	if t.writers < togetherWriters {
		if !t.g.spawn(t.write) {
			t.mu.Unlock()
			return 0, fmt.Errorf("%w: this replica stops", store.ErrUnavailable)
		}
		t.writers++
	}
	t.mu.Unlock()
	select {
	case <-p.done:
		return p.rev, p.err
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !p.taken {
		p.left = true
		return 0, fmt.Errorf("%w: %w", store.ErrUnavailable, context.Cause(ctx))
	}
	return 0, fmt.Errorf("%w: %w", store.ErrUnknown, context.Cause(ctx))
}

// write writes until nothing waits.
func (t *together) write() {
	for {
		parts := t.take()
		if len(parts) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(t.g.life, callTimeout)
		t.commitAll(ctx, parts)
		cancel()
		for _, p := range parts {
			close(p.done)
		}
	}
}

// take takes as many as a transaction holds, and of what is written to one key the first. With nothing left the writer is counted no more.
func (t *together) take() []*part {
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts, rest []*part
	keys := map[string]bool{}
	for _, p := range t.waiting {
		key := p.txn.Writes[0].Key
		switch {
		case p.left:
		case len(parts) == togetherMost || keys[key]:
			rest = append(rest, p)
		default:
			p.taken, keys[key] = true, true
			parts = append(parts, p)
		}
	}
	if t.waiting = rest; len(parts) == 0 {
		t.writers--
	}
	return parts
}

// commitAll writes parts, and says in each what became of it.
func (t *together) commitAll(ctx context.Context, parts []*part) {
	for len(parts) > 0 {
		var all store.Txn
		for _, p := range parts {
			all.Conditions = append(all.Conditions, p.txn.Conditions...)
			all.Writes = append(all.Writes, p.txn.Writes...)
		}
		rev, err := t.g.deps.Store.Commit(ctx, all)
		if err != nil && len(parts) > 1 {
			var conflict *store.ConflictError
			switch {
			case errors.As(err, &conflict):
				if rest := without(parts, conflict.Keys); len(rest) < len(parts) {
					parts = rest
					continue
				}
			case !errors.Is(err, store.ErrUnknown) && !errors.Is(err, store.ErrUnavailable):
				// One of them etcd does not take, such as one with a lease that has ended, and it does not say which.
				t.commitAll(ctx, parts[:len(parts)/2])
				t.commitAll(ctx, parts[len(parts)/2:])
				return
			}
		}
		for _, p := range parts {
			p.rev, p.err = rev, err
		}
		return
	}
}

// without tells those whose keys are not as they saw them, and returns the others.
func without(parts []*part, stale []string) []*part {
	is := make(map[string]bool, len(stale))
	for _, key := range stale {
		is[key] = true
	}
	var rest []*part
	for _, p := range parts {
		var own []string
		for _, c := range p.txn.Conditions {
			if is[c.Key] {
				own = append(own, c.Key)
			}
		}
		if len(own) == 0 {
			rest = append(rest, p)
			continue
		}
		p.err = fmt.Errorf("commit: %w", &store.ConflictError{Keys: own})
	}
	return rest
}
