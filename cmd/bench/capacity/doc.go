// Package capacity measures what a store can do of what Leasehold asks of it, and how many agents
// that is enough for. It is what `leasehold-bench etcd` shows.
//
//	run.go      what is measured, in which order, and taking away what was written
//	work.go     each thing that is measured
//	drive.go    doing something many times: as fast as it goes, or at a pace
//	verdict.go  how many agents that carries, and what limits it
//
// # Invariants
//
//   - Everything is written below one prefix, and is gone at the end, however the bench ends.
//   - At a pace, a duration counts from when its turn was: one that had to wait for others before it is not told as if it had been quick.
//
// # What it does not do
//
// It does not know which store it is, and starts none.
package capacity
