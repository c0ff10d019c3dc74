// Package witness observes a shard's keys from outside the cluster, and records every change in a
// history.
//
//	watcher.go   the watcher: its state, and waiting for it
//	session.go   one connection to one member: whether it has the same history, and following it
//	cache.go     the present keys, and the comparison of two states of etcd
//	leases.go    all leases with their keys
//	recorder.go  the commits of one replica, as its own client of the database sees them
//
// # Invariants
//
//   - Every change below the prefix is in the log once, and the changes of a revision come in a
//     row. What etcd has compacted before it was seen is found again by looking: then a mark says
//     that something was missed.
//   - A line is one history of etcd. Data that were wiped or restored begin another one, also where
//     the cluster's ID stayed the same and the revision has overtaken what we knew: the state at
//     the last revision seen is compared, not only numbers.
//   - A commit is written down before it is sent. So one that has no end may have happened, and
//     what happened was begun.
//   - There is one watch, on one member at a time. It costs the members what one more replica
//     would, and less.
package witness
