// Package capacity measures how much of Leasehold's operations a store can do, and how many agents
// that can carry. `leasehold-bench etcd` shows the result.
//
//	run.go      the measurements in order, and the removal of what they wrote
//	work.go     each measured operation
//	drive.go    repeats an operation: as fast as possible, or at a fixed rate
//	verdict.go  how many agents that carries, and what limits it
//
// # Invariants
//
//   - Everything is written below one prefix, and is gone at the end, however the bench ends.
//   - At a fixed rate, a duration counts from when the operation was due, so waiting for earlier
//     ones is included.
//
// # What it does not do
//
// It does not know the kind of store, and starts none.
package capacity
