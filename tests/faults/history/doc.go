// Package history records what was seen of a cluster from outside during faults: by the provider
// that it calls, by the tests that cause the faults, and by a watcher of etcd. The judge
// (tests/faults/judge) uses nothing else.
//
//	event.go   the kinds of events
//	log.go     events of many goroutines, in a file and, if wanted, in memory
//	time.go    one clock for all processes
//
// # Invariants
//
//   - Times are of the machine's monotonic clock, which no process here can set and all share: what
//     is earlier in it happened earlier.
//   - A log only grows. Its file gets whole lines, so a killed process loses at most its last line.
package history
