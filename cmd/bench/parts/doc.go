// Package parts runs the parts of a bench as processes of their own, so that the CPU and memory of
// each can be measured and each can be paused or killed: this same program, started again with a
// hidden command.
//
//	part.go    the parent's side: starts, pauses and stops a part
//	serve.go   the child's side: reports that it is ready, and ends with its parent
//	etcd.go    the part that is an etcd
//	replica.go the part that is a replica of the coordinator
//
// # Invariants
//
//   - No part outlives its parent: it ends when its standard input does, and the kernel kills it
//     when the parent dies.
//   - A part that does not start says why, in one line. Its log is kept in its directory.
//   - Ctrl-C at a terminal reaches the parent alone, which ends its parts in the order that it
//     wants.
//
// # What it does not do
//
// It knows nothing about what is measured.
package parts
