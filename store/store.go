package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Revision numbers the states of the whole store. It only grows, by one for each commit.
type Revision int64

// LeaseID names a lease. It prints as etcdctl prints it.
type LeaseID int64

func (id LeaseID) String() string { return fmt.Sprintf("%016x", int64(id)) }

// MaxOps is how many conditions, and how many writes, one transaction may hold: etcd's own limit.
const MaxOps = 128

// Errors that callers branch on.
var (
	// ErrNotFound: no such key.
	ErrNotFound = errors.New("not found")
	// ErrConflict: a condition of a transaction did not hold. Nothing was written. The error is
	// a *ConflictError, which names the keys.
	ErrConflict = errors.New("conflict")
	// ErrCompacted: the revision asked for is no longer kept, or was compacted before. A reader must
	// list again.
	ErrCompacted = errors.New("revision compacted")
	// ErrLeaseGone: the lease has ended, here or by the caller's own clock. Grant a new one.
	ErrLeaseGone = errors.New("lease gone")
	// ErrUnknown: the answer was lost, the write may or may not have happened. Read before
	// repeating.
	ErrUnknown = errors.New("outcome unknown")
	// ErrUnavailable: the store did not answer and nothing was written. Safe to repeat.
	ErrUnavailable = errors.New("store unavailable")
	// ErrFull is an ErrUnavailable: the store answers, but takes no writes before an operator makes
	// room in it.
	ErrFull = fmt.Errorf("%w: its space is used up", ErrUnavailable)
	// ErrDenied means that the caller lacks the right, or failed to authenticate.
	ErrDenied = errors.New("permission denied")
	// ErrNotLoggedIn is an ErrDenied: the store requires a user, and the client named none.
	ErrNotLoggedIn = fmt.Errorf("%w: no user is logged in", ErrDenied)
	// ErrLogin is an ErrDenied: the user does not exist, or the password is wrong.
	ErrLogin = fmt.Errorf("%w: user name or password is wrong", ErrDenied)
)

// ConflictError says which conditions did not hold.
type ConflictError struct {
	Keys []string // never empty
}

func (e *ConflictError) Error() string { return "conflict on " + strings.Join(e.Keys, ", ") }

// Is makes errors.Is(err, ErrConflict) true.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// KV is a key as stored.
type KV struct {
	Key      string
	Value    []byte
	Created  Revision // when it was last created
	Modified Revision // when it was last written
	Lease    LeaseID  // 0: none
}

// Listing is what a prefix held at one revision, ordered by key.
type Listing struct {
	KVs      []KV
	Revision Revision
}

// Part is a part of a listing.
type Part struct {
	Listing
	Next   string // where to go on; "" if there are no more
	Behind int    // how many more there are
}

// Condition is a comparison that must hold for a transaction to happen.
type Condition struct {
	Key string
	// Modified, if not 0, must equal the key's modification revision.
	Modified Revision
	// Created, if not 0, must equal the key's creation revision.
	Created Revision
	// Absent: the key must not exist. Exists: it must. With neither, and no revision, the
	// condition is malformed and the transaction fails.
	Absent bool
	Exists bool
}

// Unchanged holds while the key is as it was read.
func Unchanged(kv KV) Condition { return Condition{Key: kv.Key, Modified: kv.Modified} }

// At holds while the key was last modified at rev, and while it is absent if rev is 0.
func At(key string, rev Revision) Condition {
	if rev == 0 {
		return Condition{Key: key, Absent: true}
	}
	return Condition{Key: key, Modified: rev}
}

// CreatedAt holds while the key exists that was created at rev, however often it was written since.
func CreatedAt(key string, rev Revision) Condition { return Condition{Key: key, Created: rev} }

// Absent holds while there is no such key.
func Absent(key string) Condition { return Condition{Key: key, Absent: true} }

// Exists holds while there is such a key.
func Exists(key string) Condition { return Condition{Key: key, Exists: true} }

// Write is one change in a transaction: a put, or a deletion of one key. Deleting a key that
// does not exist is no error.
type Write struct {
	Key    string
	Value  []byte
	Lease  LeaseID
	Delete bool
}

// Put writes a value that stays.
func Put(key string, value []byte) Write { return Write{Key: key, Value: value} }

// PutLeased writes a value that goes with its lease.
func PutLeased(key string, value []byte, lease LeaseID) Write {
	return Write{Key: key, Value: value, Lease: lease}
}

// Delete removes a key.
func Delete(key string) Write { return Write{Key: key, Delete: true} }

// Txn happens as a whole at one revision if every condition holds, else not at all.
// A key may be written once only in it, and it has at least one write.
type Txn struct {
	Conditions []Condition
	Writes     []Write
}

// Event is one change of one key. For a deletion KV has the key and the revision of the deletion
// as Modified, and no value.
type Event struct {
	KV      KV
	Deleted bool
}

// Batch is what a watch delivers: all changes of one or more whole revisions in order, or none (a
// progress notice). In both cases everything up to Revision has been delivered. A batch with Err
// is the last one.
type Batch struct {
	Events   []Event
	Revision Revision
	Err      error
}

// Lease is a promise of the store to keep some keys until Ends.
type Lease struct {
	ID  LeaseID
	TTL time.Duration // as granted: the store may raise what was asked for
	// From was read on the caller's clock before the request was sent, so that Ends is never
	// later than the store's own end of the lease (given clocks that run at the same rate).
	From time.Time
}

// Ends returns when the lease may have ended, by the caller's clock.
func (l Lease) Ends() time.Time { return l.From.Add(l.TTL) }

// Vitals is the store's own state. A change of Cluster, Term or Leader, a Revision that goes
// backwards, or no answer is a disturbance (SAFE-1).
type Vitals struct {
	Cluster  uint64
	Leader   uint64
	Term     uint64
	Revision Revision
}

// Store is the database: a map of keys with revisions, transactions, watches and leases.
//
// Every method returns when its context ends. Reads are linearizable. Errors wrap the sentinels of
// this package where one applies; a write that failed with anything but ErrConflict, ErrLeaseGone,
// ErrDenied or ErrUnavailable must be taken as ErrUnknown.
type Store interface {
	// Get reads one key, or fails with ErrNotFound.
	Get(ctx context.Context, key string) (KV, error)

	// List reads everything below a prefix as of one revision: at, or the newest if at is 0.
	// However many requests it takes, the result is one consistent state. Fails with ErrCompacted
	// if at is no longer kept.
	List(ctx context.Context, prefix string, at Revision) (Listing, error)

	// ListPart reads some of what List reads, with one request: the first keys below a prefix that
	// do not sort before from, at most most of them unless that is 0. A caller that reads the other
	// parts at the revision of the first one reads a consistent state, without having all of it in
	// memory, and each request can have its own deadline. Fails with ErrCompacted if at is no longer
	// kept, which can happen between two parts.
	ListPart(ctx context.Context, prefix, from string, most int, at Revision) (Part, error)

	// Commit does the transaction and returns its revision, or fails with a *ConflictError.
	Commit(ctx context.Context, txn Txn) (Revision, error)

	// Watch delivers every change below prefix from revision from on, each once and in order,
	// across reconnections. It asks for progress every second, so that silence of some seconds
	// means that the connection, or the store, is not well. The channel is closed after a batch
	// with Err (ErrCompacted: list again), or when ctx ends.
	Watch(ctx context.Context, prefix string, from Revision) <-chan Batch

	// Grant makes a lease of at least ttl.
	Grant(ctx context.Context, ttl time.Duration) (Lease, error)

	// Renew extends a lease by its full TTL. It never renews by itself, and answers within ctx's
	// deadline whatever happens. Fails with ErrLeaseGone once the lease has ended, by the store's
	// word or by the deadline that this client last heard of: such a renewal is not even sent (it
	// would delay others').
	Renew(ctx context.Context, id LeaseID) (Lease, error)

	// Revoke ends a lease and deletes its keys. A lease that is gone is no error.
	Revoke(ctx context.Context, id LeaseID) error

	// Compact forgets the history before a revision, which itself can still be read: of all keys in
	// the store, keys of other shards included. Fails with ErrCompacted if that was done already.
	Compact(ctx context.Context, before Revision) error

	// Vitals asks the store for its own state.
	Vitals(ctx context.Context) (Vitals, error)
}
