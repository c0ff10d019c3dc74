// Package judge says what in the history of a cluster breaks a promise. It knows nothing but the
// history: what the provider did, what was done to machines, what etcd held at each revision.
//
//	judge.go         the questions, and what a violation is
//	tell.go          violations for people
//	replay.go        the keys of the shard, revision by revision
//	truth.go         which machines were well in truth, and for how long that can have been known
//	reason.go        for what reasons a machine that is well may be taken down
//	established.go   what was in etcd for sure when a call began, however late the watcher saw it
//	machines.go      each machine has a record, each record a machine, and no ID has two
//	removal.go       the record of a machine goes after it
//	destruction.go   nothing that is well is taken down, restarted or replaced unasked
//	condemned.go     no workload is stopped, and no machine removed, that no record condemned
//	losses.go        what a lost record stood for is left alone, and no replica makes a shard
//	verdicts.go      nobody is taken for failed too early, or against what etcd holds
//	sessions.go      of two sessions of an agent the older one writes nothing
//	silence.go       who is not heard has no lease
//	storm.go         nothing that many lose at once is replaced
//	budgets.go       expansion, max_creating, max_deleting, max_unavailable
//	fence.go         who does not lead writes nothing that only a leader writes
//	hold.go          nothing begins while the shard is on hold or the group paused
//	journal.go       every step is explained, and the explanation is true
//	convergence.go   once all is healed, all comes right
//	leftovers.go     what should have been given back
//
// # Invariants
//
//   - It is a function of the history and the terms. It has no clock, and never depends on the order of a map.
//   - It takes the side of the accused where the history leaves two readings: each check says what it tolerates, and why. What it does call a
//     violation is one, however slow the machine was that the run was played on.
//   - The watcher beside etcd is late by an unknown time, never early, and sees revisions in order. What two revisions mean to each other is
//     exact; what a revision means to a call or to a harm is so only within Terms.Slack.
//   - After etcd was wiped or restored (another line), nothing is held against anybody that only the lost past would explain.
package judge
