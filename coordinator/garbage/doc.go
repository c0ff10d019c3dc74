// Package garbage collects what a large replica no longer needs while the agents' reports wait at
// its connections.
//
// While Go's collector looks through the heap, each goroutine that makes anything has to help
// first, by 64 KiB of what is to be looked through. A hundred thousand agents have as many
// goroutines, ten thousand of which wake each second: together they have to help more than two
// processors can. They then stand in one queue, and with them all that matters more than a single
// report: the leader's clock, its session, the watch. Without this package a replica stalled for
// two to four seconds, again and again.
//
// So no data wakes them. A collection is begun before Go would begin it, nothing more is read from
// connections meanwhile, and all threads that are idle then help of their own accord. Nothing but
// agents waits, whose leases outlast it, and for less long than they did before.
//
//	collector.go  when a collection is begun
//	listener.go   connections that wait
//	heap.go       what Go's runtime tells of the heap
//
// # Invariants
//
//   - Reports wait for no longer than a standstill is borne, whatever the collector does.
//   - Go's own collector stays: whatever is missed here it does by itself, as ever.
//   - A small heap is none of our business, nor is one that an operator has given a size (GOGC,
//     GOMEMLIMIT).
package garbage
