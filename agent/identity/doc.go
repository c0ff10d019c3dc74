// Package identity says who is at the other end of a stream: the names that certificates carry,
// which authorities to trust, and the TLS 1.3 that both sides of a stream speak. Agents and
// coordinators use it alike.
//
// # Names
//
// A certificate carries its [Identity] as its only URI: leasehold://<shard ID>/agent/<instance ID>
// or leasehold://<shard ID>/coordinator/<replica ID>. A coordinator's also has the host name that
// [Identity.Host] gives, which is the same for all replicas of a shard: an agent asks for it
// whatever the address is that it dials.
//
// # Invariants
//
//   - A peer is believed only as far as a chain to one of [Trust.Authorities] goes, at the present
//     time, for the use that the role has: agents are clients, coordinators are servers.
//   - A shard's random ID is part of every name, so that shards that share an authority stay apart.
//   - What a caller asks to have certified says nothing about who it is: of a request only the key
//     is used.
//
// # What it does not do
//
// It issues nothing (coordinator/pki), keeps nothing on disk (agent/certificate), and knows
// nothing of etcd.
package identity
