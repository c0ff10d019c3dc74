// Package identity defines who is at the other end of a stream: the names in certificates, the
// authorities to trust, and the TLS 1.3 configuration of both sides. Agents and coordinators use
// it.
//
// # Names
//
// A certificate carries its [Identity] as its only URI: leasehold://<shard ID>/agent/<instance ID>
// or leasehold://<shard ID>/coordinator/<replica ID>. A coordinator's also has the host name that
// [Identity.Host] gives, which is the same for all replicas of a shard: an agent asks for this name
// at every address that it dials.
//
// # Invariants
//
//   - A peer is trusted only with a chain to one of [Trust.Authorities] that is valid now, for the
//     use of its role: agents are clients, coordinators are servers.
//   - A shard's random ID is part of every name, so that shards that share an authority stay apart.
//   - The content of a request does not identify the caller: only the key of a request is used.
//
// # What it does not do
//
// It issues no certificates (coordinator/pki does), keeps nothing on disk (agent/certificate does),
// and does not use etcd.
package identity
