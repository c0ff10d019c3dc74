// Package judge finds broken promises in the history of a cluster. It knows only the history: what
// the provider did, the faults of machines, what etcd held at each revision.
//
//	judge.go         the questions, and what a violation is
//	tell.go          violations for people
//	replay.go        the keys of the shard, revision by revision
//	truth.go         which machines were really healthy, and since when that could be known
//	reason.go        for what reasons a healthy machine may be taken down
//	established.go   what was certainly in etcd when a call began, however late the watcher saw it
//	machines.go      each machine has a record, each record a machine, and no ID has two
//	removal.go       the record of a machine goes after it
//	destruction.go   no healthy machine is taken down, restarted or replaced without an order
//	condemned.go     no workload is stopped, and no machine removed, unless a record condemned it
//	losses.go        the slot of a lost record is left alone, and no replica creates a shard
//	verdicts.go      no instance is judged failed too early, or against the records in etcd
//	sessions.go      the older of two sessions of an agent writes nothing
//	silence.go       a silent agent loses its lease
//	storm.go         in a mass loss nothing is replaced
//	budgets.go       expansion, max_creating, max_deleting, max_unavailable
//	fence.go         only the leader writes what only a leader may write
//	hold.go          nothing begins while the shard is on hold or the group paused
//	journal.go       every step is explained, and the explanation is true
//	convergence.go   after all faults, everything becomes as wanted
//	traffic.go       no instance is in service that should not be, drained too early, or torn
//	certificates.go  no certificate ends on a machine in contact, and no key leaves its machine
//	leftovers.go     what should have been removed
//
// # Invariants
//
//   - It is a function of the history and the terms. It has no clock, and never depends on the
//     order of a map.
//   - In doubt it finds no violation: each check says what it tolerates, and why. What it calls a
//     violation is one, however slow the
//     machine of the run was.
//   - The watcher beside etcd is late by an unknown time, never early, and sees revisions in order.
//     What two revisions mean to each other is exact; what a revision means to a call or to a harm
//     is so only within Terms.Slack.
//   - After etcd was wiped or restored (another line), nothing counts as a violation that only the
//     lost past would explain.
package judge
