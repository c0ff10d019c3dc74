// Package leader decides what the leader of a shard does, and when. It has no goroutines, clocks or
// I/O: Leader.Step takes an Event and returns Commands, as RawNode does in etcd's raft, and
// Leader.NextStep says when to step again. The coordinator drives it on etcd and real providers.
// Simulations, dry runs and the planner's tests and bench drive the same Leader in virtual time, so
// that they run the loop that ships.
//
//	events.go      what can happen, and what is to be done
//	leader.go      rounds: look at the cache, plan, commit one transaction after the other
//	operations.go  provider calls from their queue to their outcome
//	calls.go       which calls begin when; pace.go is the rate of creations
//	traffic.go     what is asked of load balancers, and when they are listed
//	queries.go     when numbers from outside are asked for
//	validations.go which specs providers are asked about
//	lists.go       when a provider's machines are listed
//	txn.go         fenced transactions, and what their outcome means
//
// # Invariants
//
//   - One round at a time, and within it one transaction at a time. Later events are planned in the
//     next round.
//   - Every transaction compares the fence (SAFE-7).
//   - A call for an instance is recorded before it is made. The removal of its machine is recorded
//     as a phase; its evidence is verified before it begins (SAFE-8).
//   - One operation per instance at a time (SAFE-8).
//
// A Leader is not safe for concurrent use. The evidence that it works on is.
package leader
