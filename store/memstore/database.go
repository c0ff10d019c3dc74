package memstore

import (
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Config configures a database. The zero value is a fresh etcd on the real clock.
type Config struct {
	Clock  Clock         // default: RealClock
	MinTTL time.Duration // shorter leases get this TTL; default: 2s, as etcd with its defaults
}

// Database is what the servers hold. It is safe for concurrent use.
type Database struct {
	clock  Clock
	minTTL time.Duration
	ended  chan struct{} // closed by Close

	mu        sync.Mutex
	closed    bool
	history   history
	leases    map[store.LeaseID]*lease
	lastLease store.LeaseID
	watches   map[*watch]struct{}
	running   sync.WaitGroup // the watches

	frozen    bool
	thaw      chan struct{} // closed when the database thaws
	abandoned []store.Txn   // commits whose callers gave up while it was frozen
	applyLate bool          // whether they happen on thaw

	cluster, leader, term uint64
	shown                 store.Revision // what Vitals say instead of the revision, if not 0
}

// New makes an empty database. Nothing runs in it until a lease is granted or a watch begun.
func New(config Config) *Database {
	if config.Clock == nil {
		config.Clock = RealClock{}
	}
	if config.MinTTL == 0 {
		config.MinTTL = 2 * time.Second
	}
	return &Database{
		clock:     config.Clock,
		minTTL:    config.MinTTL,
		ended:     make(chan struct{}),
		history:   newHistory(),
		leases:    map[store.LeaseID]*lease{},
		lastLease: 0x694d_5eed_0000_0000, // as long as etcd's, which are arbitrary
		watches:   map[*watch]struct{}{},
		cluster:   0xc1,
		leader:    0x1ead,
		term:      2,
	}
}

// Connect makes a client. Each has its own connection faults.
func (db *Database) Connect() *Store {
	return &Store{db: db, deadlines: map[store.LeaseID]time.Time{}}
}

// Close ends all watches and stops all leases' clocks, and returns when nothing of the database
// runs any more. Calls of its clients fail with ErrUnavailable from then on.
func (db *Database) Close() {
	db.mu.Lock()
	if !db.closed {
		db.closed = true
		close(db.ended)
		for _, l := range db.leases {
			l.timer.Stop()
		}
	}
	db.mu.Unlock()
	db.running.Wait()
}

// apply executes the writes, with their leases, and notifies the watches. db.mu is held, and the
// leases were checked.
func (db *Database) apply(writes []store.Write) store.Revision {
	for _, w := range writes {
		if was, there := db.history.get(w.Key); there && was.Lease != 0 {
			if l := db.leases[was.Lease]; l != nil {
				delete(l.keys, w.Key)
			}
		}
		if !w.Delete && w.Lease != 0 {
			db.leases[w.Lease].keys[w.Key] = struct{}{}
		}
	}
	events := db.history.apply(writes)
	for w := range db.watches {
		if w.concerns(events) {
			w.awake()
		}
	}
	return db.history.revision
}

// commit executes a transaction as the server does. db.mu is held.
func (db *Database) commit(txn store.Txn) (store.Revision, error) {
	var failed []string
	for _, c := range txn.Conditions {
		kv, _ := db.history.get(c.Key)
		if !c.Holds(kv) && !slices.Contains(failed, c.Key) {
			failed = append(failed, c.Key)
		}
	}
	if len(failed) > 0 {
		return 0, &store.ConflictError{Keys: failed}
	}
	for _, w := range txn.Writes {
		if !w.Delete && w.Lease != 0 && db.leases[w.Lease] == nil {
			return 0, leaseGone(w.Lease)
		}
	}
	return db.apply(txn.Writes), nil
}
