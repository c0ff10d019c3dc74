// Package seed writes a shard into etcd as it would be a moment after its machines were made: the
// shard, its groups, and for each machine a record that waits for its agent. What follows is the
// product's own work: agents register, and the leader finds them well.
//
// It also takes a shard out of etcd again.
package seed
