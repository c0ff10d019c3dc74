// Package coordinator is one replica of a shard's coordinator. Every replica follows etcd and
// serves agents. The elected one, the leader, also plans and acts for its term.
//
//	replica.go     a replica's life: shard, cache, gateway, session, election
//	waiting.go     waiting for a store that holds the shard
//	term.go        one term of leadership: the loop that steps leader.Leader
//	perform.go     the leader's commands, on etcd and real providers
//	commit.go      actions as a fenced transaction with their journal entries
//	inbox.go       events that wait for the loop
//	served.go      what a leader leaves for the next one, and the compaction of etcd's history
//	disturbance.go what may have cost agents their leases
//	journal.go     the journal's keys and leases
//
// What a leader decides, and when, is in package leader, which has no I/O. What a term has seen and
// cannot be read from etcd is in package evidence, which makes the planner's snapshot.
//
// # Invariants
//
//   - Every write of a term compares the key that won the election (SAFE-7).
//   - A term's context ends, with a cause, when its leadership may have ended by the replica's own
//     clock; nothing is left running when it returns.
//   - No group is planned on a cache older than the last write to it (SAFE-3).
//   - The package knows etcd as a store.Store, and machines as a provider.Provider.
package coordinator
