// Package journal keeps the newest part of the journal in a replica's memory, so that whatever shows
// it asks etcd for nothing: the page, and the page as it was.
//
//	memory.go  the entries, in order
//	follow.go  reads them once, and follows what is added
//
// # Invariants
//
//   - There are at most so many entries in memory, however many etcd has. Since says from when on
//     nothing is missing.
//   - An entry that etcd drops is dropped here too.
//   - An entry that cannot be decoded is left out: it hides no other.
package journal
