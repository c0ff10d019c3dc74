// Package garbage collects the garbage of a large replica while the agents' reports wait at its
// connections.
//
// During Go's mark phase, a goroutine that allocates must first assist by scanning 64 KiB. A
// hundred thousand agents have as many goroutines, ten thousand of which wake each second: together
// they owe more assists than two processors can perform. All of them then wait in one queue,
// together with everything that is more urgent than a single report: the leader's clock, its
// session, the watch. Without this package a replica stalled repeatedly for two to four seconds.
//
// So this package keeps data from waking them. It begins a collection before Go would, and lets
// connections read nothing meanwhile; then idle threads do the marking. Only agents wait, whose
// leases outlast that, and for less time than they did before.
//
//	collector.go  when a collection is begun
//	listener.go   connections that wait
//	heap.go       what Go's runtime reports about the heap
//
// # Invariants
//
//   - Reports never wait so long that a lease ends, whatever the collector does.
//   - Go's own collector remains in charge: it collects whatever this package misses.
//   - The package leaves small heaps alone, and heaps that an operator has configured (GOGC,
//     GOMEMLIMIT).
package garbage
