package etcdstore

import (
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
)

// keepEnded is for how long the end of a lease is remembered: until etcd has certainly revoked it.
// After a restart it drains expired leases at about a thousand a second, so that 100,000 take
// minutes.
const keepEnded = 10 * time.Minute

// leaseEnds knows, by our own clock, when each lease may have ended. It holds the leases that live
// and those that ended within keepEnded, and no others.
type leaseEnds struct {
	shards [16]leaseEndsShard
}

type leaseEndsShard struct {
	mu    sync.Mutex
	ends  map[store.LeaseID]time.Time
	sweep int // forget what ended long ago when there are so many
}

func newLeaseEnds() *leaseEnds {
	l := &leaseEnds{}
	for i := range l.shards {
		l.shards[i] = leaseEndsShard{ends: make(map[store.LeaseID]time.Time), sweep: 256}
	}
	return l
}

func (l *leaseEnds) shard(id store.LeaseID) *leaseEndsShard {
	return &l.shards[spread(id)%uint64(len(l.shards))]
}

// of says when the lease ends, if that is known.
func (l *leaseEnds) of(id store.LeaseID) (time.Time, bool) {
	s := l.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	end, known := s.ends[id]
	return end, known
}

// learn records an end that etcd promised. An earlier end than the known one is ignored.
func (l *leaseEnds) learn(id store.LeaseID, end time.Time) {
	s := l.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	old, known := s.ends[id]
	if known && old.After(end) {
		return
	}
	s.ends[id] = end
	if !known && len(s.ends) >= s.sweep {
		for id, end := range s.ends {
			if time.Since(end) > keepEnded {
				delete(s.ends, id)
			}
		}
		s.sweep = max(256, 2*len(s.ends)) // so that sweeping costs little for each lease, however many there are
	}
}

// ended records that etcd said the lease is gone.
func (l *leaseEnds) ended(id store.LeaseID, now time.Time) {
	s := l.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if end, known := s.ends[id]; known && end.After(now) {
		s.ends[id] = now
	}
}

func (l *leaseEnds) forget(id store.LeaseID) {
	s := l.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ends, id)
}

// spread makes neighbouring lease IDs differ in their low bits: etcd counts them up.
func spread(id store.LeaseID) uint64 {
	x := uint64(id) * 0x9e3779b97f4a7c15
	return x ^ x>>32
}
