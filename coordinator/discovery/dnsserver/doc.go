// Package dnsserver tells the instances in service to clients that ask by DNS (LB-4).
//
//	server.go  where it listens, which clients it answers, how much anything may cost
//	answer.go  the names there are, and how an answer is made to fit
//
// # Invariants
//
//   - Answers come from a discovery.Directory alone: they go on while etcd is away, and then say
//     how old they are.
//   - Until the shard has been read a query fails. It is never told that a name does not exist
//     because nothing is known.
//   - It answers for one zone, resolves no other names, and lists none.
//   - By UDP no answer is longer than 1232 bytes.
//
// # What it does not do
//
// DNSSEC, delegation (there are no NS records: resolvers are told to forward), reverse names.
package dnsserver
