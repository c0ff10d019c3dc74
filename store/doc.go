// Package store is the vocabulary of Leasehold's state: what is recorded, under which key, which
// phase may follow which, and the contract of the database that holds it.
//
// On that contract the package builds what several packages need: a session on a
// lease (session.go), the election (elect.go) and following a prefix (follow.go).
//
// The package imports the standard library alone. Adapters live beside it: etcdstore (the real
// one), memstore (same contract in memory, with faults on demand) and embedetcd (an etcd member in
// this process). storetest holds the one suite that both stores pass.
//
// # Invariants
//
//   - keys.go is the only place that knows how a key is spelled.
//   - Every value carries a schema number. A newer one is refused ([ErrSchema]), never guessed at.
//   - A record of an instance is never on a lease: only alive/, replicas/, leader/, strays/,
//     tokens/, hosts/, extras/, gone/, events/ and loads/ are.
//   - Everything that decides goes through [Store.Commit] with conditions on what was read.
//
// # What it does not do
//
// It keeps no cache of the shard (see coordinator/cache) and decides nothing about machines
// (see coordinator/plan).
package store
