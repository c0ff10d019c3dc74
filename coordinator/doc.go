// Package coordinator is one replica of a shard's coordinator. Every replica follows etcd and serves agents; the one that is
// elected also plans and acts, for the time of its term.
//
//	replica.go     a replica's life: shard, picture, gateway, session, election
//	term.go      one term of leadership: picture → plan → transactions → provider calls
//	commit.go      an action as a fenced transaction with its journal entry
//	queue.go       provider calls: bounded, rate-limited, one at a time for each instance
//	lister.go      what the providers list
//	disturbance.go what may have cost agents their leases
//	journal.go     the journal's keys and leases
//
// What a term has seen and cannot be read from etcd is in package evidence, whence the planner's snapshot comes.
//
// # Invariants
//
//   - Every write of a term compares the key that won the election (SAFE-7).
//   - A term's context ends, with a cause, when its leadership may have ended by our own clock; nothing of it
//     is left running when it returns.
//   - No group is planned on a picture older than the last write to it (SAFE-3).
//   - etcd is known here as a store.Store, machines as a provider.Provider.
package coordinator
