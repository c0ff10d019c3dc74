package gateway_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
)

// pausing is a store on whose commits and renewals something else can happen first.
type pausing struct {
	store.Store
	mu    sync.Mutex
	first func(store.Txn) bool  // true: it has happened, and does not again
	then  func(store.Txn) bool  // as first, after the commit
	reads map[string]int        // by key
	renew func(context.Context) // called before the next renewal
	late  time.Duration         // after which the next renewal is answered
	stuck bool                  // no commit is answered
	slow  *rand.Rand            // if set, every call takes up to 50 ms
}

// take lets a call take its time, so that the calls of many callers mix.
func (p *pausing) take() {
	p.mu.Lock()
	var wait time.Duration
	if p.slow != nil {
		wait = time.Duration(p.slow.Int64N(int64(50 * time.Millisecond)))
	}
	p.mu.Unlock()
	if wait > 0 {
		<-time.After(wait)
	}
}

// slowsDown has etcd take its time from now on, as the seed has it.
func (r *replica) slowsDown(seed uint64) {
	r.pause.mu.Lock()
	defer r.pause.mu.Unlock()
	r.pause.slow = rand.New(rand.NewPCG(seed, 0))
}

func (p *pausing) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	p.take()
	p.mu.Lock()
	if p.first != nil && p.first(txn) {
		p.first = nil
	}
	stuck := p.stuck
	p.mu.Unlock()
	if stuck {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	rev, err := p.Store.Commit(ctx, txn)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.then != nil && p.then(txn) {
		p.then = nil
		return 0, store.ErrUnknown
	}
	return rev, err
}

func (p *pausing) Get(ctx context.Context, key string) (store.KV, error) {
	p.mu.Lock()
	if p.reads == nil {
		p.reads = map[string]int{}
	}
	p.reads[key]++
	p.mu.Unlock()
	p.take()
	return p.Store.Get(ctx, key)
}

func (p *pausing) Renew(ctx context.Context, id store.LeaseID) (store.Lease, error) {
	p.mu.Lock()
	do, late := p.renew, p.late
	p.renew, p.late = nil, 0
	p.mu.Unlock()
	if do != nil {
		do(ctx)
	}
	l, err := p.Store.Renew(ctx, id)
	if late > 0 {
		select {
		case <-time.After(late):
		case <-ctx.Done():
		}
	}
	return l, err
}

// answersLate has the answer of the next renewal come so much later.
func (r *replica) answersLate(by time.Duration) {
	r.pause.mu.Lock()
	defer r.pause.mu.Unlock()
	r.pause.late = by
}

// writesAreAnswered says whether writes get an answer. Renewals do in any case: they go through no
// log.
func (r *replica) writesAreAnswered(yes bool) {
	r.pause.mu.Lock()
	defer r.pause.mu.Unlock()
	r.pause.stuck = !yes
}

// beforeRenewing has something happen as the next renewal begins.
func (r *replica) beforeRenewing(do func(context.Context)) {
	r.pause.mu.Lock()
	defer r.pause.mu.Unlock()
	r.pause.renew = do
}

// beforeWriting has something happen between the reading of what alive/<id> depends on, and the
// next write of it.
func (r *replica) beforeWriting(id string, do func()) {
	r.beforeCommitting(r.w.keys.Alive(id), do)
}

// beforeCommitting has something happen just before the next transaction whose first write is of a
// key.
func (r *replica) beforeCommitting(key string, do func()) {
	r.pause.mu.Lock()
	defer r.pause.mu.Unlock()
	r.pause.first = func(txn store.Txn) bool {
		if txn.Writes[0].Key != key {
			return false
		}
		do()
		return true
	}
}

// afterCommitting has something happen once such a transaction is in etcd, and loses its answer.
func (r *replica) afterCommitting(key string, do func()) {
	r.pause.mu.Lock()
	defer r.pause.mu.Unlock()
	r.pause.then = func(txn store.Txn) bool {
		if txn.Writes[0].Key != key {
			return false
		}
		do()
		return true
	}
}
