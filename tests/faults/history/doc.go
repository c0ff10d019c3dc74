// Package history is what was seen of a cluster from outside while it was hurt: by the provider
// that it calls, by whoever hurts it, and by a watcher beside etcd. The judge (tests/faults/judge)
// works on nothing else.
//
//	event.go   the kinds of events
//	log.go     events as they come, from many at once; kept in a file, if wanted in memory too, and read again
//	time.go    one clock for all processes
//
// # Invariants
//
//   - Times are of the machine's monotonic clock, which no process here can set and all share: what is earlier in it happened earlier.
//   - A log is only added to. What is written to its file is whole lines, so that a killed process loses its last line at most.
package history
