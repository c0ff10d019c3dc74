package witness

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// Recording says whose commits are written down, and where.
type Recording struct {
	Replica string
	Process int // its number: each has commits of its own
	Keys    store.Keys
	File    *history.File
}

// Record is a store whose commits are written down: before each is sent, and when its outcome is
// known.
func Record(s store.Store, r Recording) store.Store {
	return &recorder{Store: s, r: r, line: r.Keys.Of(store.KindLeader)}
}

type recorder struct {
	store.Store
	r    Recording
	line string // below which all stand for election
	last atomic.Uint64

	mu       sync.Mutex
	stood    string      // the key that this replica stood for election with last
	believed store.Fence // what it holds, if it has won with that
}

func (r *recorder) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	c := history.Commit{ID: r.last.Add(1), Replica: r.r.Replica, Process: r.r.Process, Fence: r.fence(txn)}
	for _, w := range txn.Writes {
		c.Keys = append(c.Keys, w.Key)
	}
	candidate := r.begin(&c, txn)
	begun := c
	r.r.File.Add(history.Event{Commit: &begun})
	revision, err := r.Store.Commit(ctx, txn)
	c.Ended, c.Outcome = true, outcome(err)
	if err == nil {
		c.At = revision
		if candidate != "" {
			r.learn(store.KV{Key: candidate, Created: revision})
		}
	}
	r.r.File.Add(history.Event{Commit: &c})
	return revision, err
}

// begin notes what the replica believes as it sends a transaction, and returns its key if it stands
// for election with this one.
func (r *recorder) begin(c *history.Commit, txn store.Txn) (candidate string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.Fence != (store.Fence{}) {
		r.believed = c.Fence
	}
	c.Believed = r.believed
	if c.Fence != (store.Fence{}) {
		return ""
	}
	for _, w := range txn.Writes {
		if !w.Delete && strings.HasPrefix(w.Key, r.line) {
			r.stood = w.Key
			return w.Key
		}
	}
	return ""
}

// Get may show the key that was stood with, whose answer was lost.
func (r *recorder) Get(ctx context.Context, key string) (store.KV, error) {
	kv, err := r.Store.Get(ctx, key)
	if err == nil {
		r.learn(kv)
	}
	return kv, err
}

// List shows it too: who stands looks at all who do.
func (r *recorder) List(ctx context.Context, prefix string, at store.Revision) (store.Listing, error) {
	listing, err := r.Store.List(ctx, prefix, at)
	r.learnAll(prefix, listing)
	return listing, err
}

// ListPart shows it as List does.
func (r *recorder) ListPart(ctx context.Context, prefix, from string, most int, at store.Revision) (store.Part, error) {
	part, err := r.Store.ListPart(ctx, prefix, from, most, at)
	r.learnAll(prefix, part.Listing)
	return part, err
}

func (r *recorder) learnAll(prefix string, l store.Listing) {
	if prefix == r.line {
		for _, kv := range l.KVs {
			r.learn(kv)
		}
	}
}

// learn takes the key that this replica stood with for what it believes to hold.
func (r *recorder) learn(kv store.KV) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if kv.Key != "" && kv.Key == r.stood && (kv.Key != r.believed.Key || kv.Created > r.believed.Created) {
		r.believed = store.Fence{Key: kv.Key, Created: kv.Created}
	}
}

// fence is the one that a transaction compares.
func (r *recorder) fence(txn store.Txn) store.Fence {
	for _, c := range txn.Conditions {
		if c.Created != 0 && strings.HasPrefix(c.Key, r.line) {
			return store.Fence{Key: c.Key, Created: c.Created}
		}
	}
	return store.Fence{}
}

// outcome is what an error leaves known, as store.Store promises it.
func outcome(err error) history.Outcome {
	if err == nil {
		return history.Happened
	}
	for _, refused := range []error{store.ErrConflict, store.ErrLeaseGone, store.ErrDenied, store.ErrUnavailable} {
		if errors.Is(err, refused) {
			return history.Refused
		}
	}
	return history.Unknown
}
