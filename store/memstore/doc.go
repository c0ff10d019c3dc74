// Package memstore is the store in memory: the contract of [store.Store], which etcdstore keeps
// with etcd, without etcd, without a disk, and with faults on demand.
//
// A [Database] is what etcd's servers hold: keys with their history, and leases that end on its
// [Clock]. A [Store] is one client of it, got by [Database.Connect]: what one replica would have.
// Faults of the database strike all clients ([DatabaseFaults]), faults of a connection one of them
// ([ConnectionFaults]).
//
// # Invariants
//
//   - It behaves as etcd does: a commit that changes something is one revision more; one that only
//     deletes what is not there is none. A put takes the key off its lease, unless it names one.
//     Leases last whole seconds and at least the minimum. A lease's keys go in one revision, in the
//     order of their names.
//   - Leases end by themselves, on the clock. With [RealClock] that also holds inside a
//     testing/synctest bubble, if the database was made in it.
//   - A watch that is not read costs memory and nothing else: commits never wait for it.
//   - The maker of a database closes it. Then, and when a watch's context ends, nothing of it is
//     left running.
//
// # What it does not do
//
// Nothing is kept when the process ends. Leases end exactly when they are due and all at once,
// where etcd takes up to 0.5s and lets go of about a thousand a second. There are no users and no
// permissions.
package memstore
