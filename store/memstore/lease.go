package memstore

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// lease is a lease as the server knows it.
type lease struct {
	id    store.LeaseID
	ttl   time.Duration
	ends  time.Time
	keys  map[string]struct{}
	timer Timer
}

func leaseGone(id store.LeaseID) error { return fmt.Errorf("lease %s: %w", id, store.ErrLeaseGone) }

// grant makes a lease. db.mu is held.
func (db *Database) grant(ttl time.Duration) *lease {
	ttl = max(ttl, db.minTTL)
	if part := ttl % time.Second; part != 0 {
		ttl += time.Second - part
	}
	db.lastLease++
	l := &lease{id: db.lastLease, ttl: ttl, keys: map[string]struct{}{}}
	db.leases[l.id] = l
	db.run(l)
	return l
}

// run starts a lease's time. db.mu is held.
func (db *Database) run(l *lease) {
	l.ends = db.clock.Now().Add(l.ttl)
	l.timer = db.clock.AfterFunc(l.ttl, func() { db.expire(l) })
}

// renew gives a lease its full time again. db.mu is held.
func (db *Database) renew(id store.LeaseID) (*lease, error) {
	l := db.leases[id]
	if l == nil || !db.clock.Now().Before(l.ends) {
		return nil, leaseGone(id)
	}
	l.ends = db.clock.Now().Add(l.ttl) // the timer finds out when it fires
	return l, nil
}

// expire is called when a lease may be due.
func (db *Database) expire(l *lease) {
	db.mu.Lock()
	defer db.mu.Unlock()
	switch left := l.ends.Sub(db.clock.Now()); {
	case db.closed || db.leases[l.id] != l:
	case left > 0: // it was renewed meanwhile
		l.timer = db.clock.AfterFunc(left, func() { db.expire(l) })
	case db.frozen: // Thaw sees to it
	default:
		db.revoke(l)
	}
}

// revoke ends a lease: its keys go in one revision, in the order of their names. db.mu is held.
func (db *Database) revoke(l *lease) {
	l.timer.Stop()
	names := make([]string, 0, len(l.keys))
	for key := range l.keys {
		names = append(names, key)
	}
	slices.Sort(names)
	writes := make([]store.Write, len(names))
	for i, name := range names {
		writes[i] = store.Delete(name)
	}
	delete(db.leases, l.id)
	db.apply(writes)
}

// revokeOverdue ends all leases that are overdue, in the order of their ends. db.mu is held.
func (db *Database) revokeOverdue() {
	now := db.clock.Now()
	var overdue []*lease
	for _, l := range db.leases {
		if !now.Before(l.ends) {
			overdue = append(overdue, l)
		}
	}
	slices.SortFunc(overdue, func(a, b *lease) int {
		if d := a.ends.Compare(b.ends); d != 0 {
			return d
		}
		return int(a.id - b.id)
	})
	for _, l := range overdue {
		db.revoke(l)
	}
}
