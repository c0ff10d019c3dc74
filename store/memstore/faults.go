package memstore

import (
	"github.com/leasehold/leasehold/store"
)

// DatabaseFaults are what can happen to the servers. They strike all clients.
type DatabaseFaults struct{ db *Database }

// Faults returns the database's.
func (db *Database) Faults() DatabaseFaults { return DatabaseFaults{db} }

// Freeze stops the servers as a stalled VM does: calls hang until Thaw or the end of their
// contexts, watches are silent, and the leases' time runs on.
func (f DatabaseFaults) Freeze() {
	f.db.mu.Lock()
	defer f.db.mu.Unlock()
	if !f.db.frozen {
		f.db.frozen = true
		f.db.thaw = make(chan struct{})
	}
}

// Thaw lets the servers go on. As with etcd, the first thing that they do is to revoke the leases
// that are overdue, though their owners are alive and their renewals are waiting. Then come the
// commits whose callers gave up (see ApplyAbandoned), then the calls that still wait.
func (f DatabaseFaults) Thaw() {
	f.db.mu.Lock()
	defer f.db.mu.Unlock()
	if !f.db.frozen {
		return
	}
	f.db.frozen = false
	f.db.revokeOverdue()
	for _, txn := range f.db.abandoned {
		_, _ = f.db.commit(txn) // no caller waits for the answer
	}
	f.db.abandoned = nil
	close(f.db.thaw)
	f.db.awakeAll()
}

// ApplyAbandoned sets whether commits whose callers gave up while the servers were frozen happen on
// Thaw. Their callers got ErrUnknown in both cases.
func (f DatabaseFaults) ApplyAbandoned(apply bool) {
	f.db.mu.Lock()
	defer f.db.mu.Unlock()
	f.db.applyLate = apply
}

// Compact discards the history before rev, or before the newest revision if rev is 0. A watch
// without a fault still gets every change before that; a watch that a fault keeps from delivering
// finds its revision compacted.
func (f DatabaseFaults) Compact(rev store.Revision) error {
	f.db.mu.Lock()
	defer f.db.mu.Unlock()
	if rev == 0 {
		rev = f.db.history.revision
	}
	return f.db.compact(rev)
}

// compact discards the history before rev. db.mu is held.
func (db *Database) compact(rev store.Revision) error {
	for w := range db.watches {
		w.save()
	}
	err := db.history.compact(rev)
	db.awakeAll()
	return err
}

// DropLease ends a lease that its owner keeps renewing, as etcd can do around a change of its
// leader. It reports whether there was one.
func (f DatabaseFaults) DropLease(id store.LeaseID) bool {
	f.db.mu.Lock()
	defer f.db.mu.Unlock()
	l := f.db.leases[id]
	if l != nil {
		f.db.revoke(l)
	}
	return l != nil
}

// ChangeLeader has the servers elect another leader: a new term, and, as with etcd, the full time
// for every lease.
func (f DatabaseFaults) ChangeLeader() {
	f.db.mu.Lock()
	defer f.db.mu.Unlock()
	f.db.term++
	f.db.leader++
	for _, l := range f.db.leases {
		l.timer.Stop()
		f.db.run(l)
	}
}

// ChangeCluster makes Vitals report another cluster.
func (f DatabaseFaults) ChangeCluster() {
	f.db.mu.Lock()
	defer f.db.mu.Unlock()
	f.db.cluster++
}

// ShowRevision has Vitals say this revision instead of the true one, as after a snapshot was
// restored; 0: the true one again.
func (f DatabaseFaults) ShowRevision(rev store.Revision) {
	f.db.mu.Lock()
	defer f.db.mu.Unlock()
	f.db.shown = rev
}

// abandon notes a commit whose caller gave up while the database was frozen.
func (db *Database) abandon(txn store.Txn) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.frozen && db.applyLate {
		db.abandoned = append(db.abandoned, txn)
	}
}

// awakeAll makes all watches look again. db.mu is held.
func (db *Database) awakeAll() {
	for w := range db.watches {
		w.awake()
	}
}

// ConnectionFaults are what can happen to one client's connection.
type ConnectionFaults struct{ s *Store }

// Faults returns the faults of this client's connection.
func (s *Store) Faults() ConnectionFaults { return ConnectionFaults{s} }

// Cut makes every call fail at once with ErrUnavailable, and silences the watches. Leases run on.
func (f ConnectionFaults) Cut() { f.set(func(s *Store) { s.cut = true }) }

// Mend ends Cut. The watches go on where they were.
func (f ConnectionFaults) Mend() { f.set(func(s *Store) { s.cut = false }) }

// StallWatches silences the watches, while calls go on: no events, no progress.
func (f ConnectionFaults) StallWatches() { f.set(func(s *Store) { s.stalled = true }) }

// ReleaseWatches ends StallWatches. The watches go on where they were.
func (f ConnectionFaults) ReleaseWatches() { f.set(func(s *Store) { s.stalled = false }) }

// LoseAnswer makes the next commit fail with ErrUnknown although it is executed, if its conditions
// hold. Each call does this to one more commit.
func (f ConnectionFaults) LoseAnswer() { f.set(func(s *Store) { s.lostAnswers++ }) }

// LoseRequest has the next commit fail with ErrUnknown, and not happen.
func (f ConnectionFaults) LoseRequest() { f.set(func(s *Store) { s.lostRequests++ }) }

func (f ConnectionFaults) set(change func(*Store)) {
	f.s.db.mu.Lock()
	defer f.s.db.mu.Unlock()
	change(f.s)
	f.s.db.awakeAll()
}
