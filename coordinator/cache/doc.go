// Package cache keeps one shard's records in memory, decoded, at a known revision, for all who
// need them in one process: the gateway, the leader's term, the page.
//
// # Invariants
//
//   - The content is what etcd held at Revision: one listing, then every change in order.
//   - A record that cannot be read is not taken for absent: it is in Unreadable, and every decision
//     must not decide around it.
//   - Listeners hear every change once and in order, on the goroutine that follows etcd; they must
//     not block.
//
// # What it does not do
//
// It judges nothing and writes nothing. How old the cache is it says (Heard); whether that is too
// old is for others to say.
package cache
