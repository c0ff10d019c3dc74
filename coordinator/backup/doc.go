// Package backup copies a shard to a file, and back into an etcd (DAY-2).
//
//	content.go  what a backup holds, and reading it from the store
//	file.go     the file: gzip of JSON lines, checksummed, encrypted with age if asked
//	restore.go  writing it into an etcd without the shard
//	schedule.go backups of a replica at intervals, to a directory or a command
//
// # Invariants
//
//   - A backup is one shard at one revision. Values are copied byte for byte: secrets stay
//     encrypted.
//   - A damaged or shortened file is refused as a whole.
//   - Restore overwrites nothing and may be repeated. The shard's own key comes last and is on
//     hold, so that no coordinator makes a decision before everything is there.
//   - A scheduled backup is removed only after a newer one of the same shard ID succeeded, and
//     never while the shard is on hold. The file of one whose command failed is replaced by the
//     next.
//
// # What it does not do
//
// It does not copy agents' sessions, reports, orders, the journal or join tokens: they are derived,
// too old to be carried out, or must work only once. It copies no key files and no certificate
// authorities.
package backup
