// Package cache keeps one shard's records in memory, decoded, at a known revision, for all parts of
// a process that need them: the gateway, the leader's term, the page.
//
// # Invariants
//
//   - The content is what etcd held at Revision: one listing, then every change in order.
//   - An unreadable record does not count as absent: it is in Unreadable, and decisions must not
//     ignore it.
//   - Listeners receive every change once and in order, on the goroutine that follows etcd; they
//     must not block.
//
// # What it does not do
//
// It judges nothing and writes nothing. It reports its age (Heard); its users decide whether that
// is too old.
package cache
