// Package witness sees what becomes of a shard's keys from beside the cluster, and writes it into a
// history.
//
//	watcher.go   the watcher: what it knows, and how others wait for it
//	session.go   one connection to one member: is it the history that we know, and how it goes on
//	cache.go     the keys as they stand, and how two states of etcd are told apart
//	leases.go    all leases with their keys
//	recorder.go  the commits of one replica, as its own client of the database sees them
//
// # Invariants
//
//   - Every change below the prefix is in the log once, and those of a revision come in a row. What etcd has compacted before it was seen is found
//     again by looking: then a mark says that something was missed.
//   - A line is one history of etcd. Data that were wiped or restored begin another one, also where the cluster's ID stayed the same and the revision
//     has overtaken what we knew: the state at the last revision seen is compared, not only numbers.
//   - A commit is written down before it is sent. So one that has no end may have happened, and what happened was begun.
//   - There is one watch, on one member at a time. It costs the members what one more replica would, and less.
package witness
