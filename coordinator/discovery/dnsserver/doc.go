// Package dnsserver serves the instances in service by DNS (LB-4).
//
//	server.go  where it listens, which clients it answers, how much anything may cost
//	answer.go  the names there are, and how an answer is made to fit
//
// # Invariants
//
//   - Answers come only from a discovery.Directory: they continue while etcd is away, and then give
//     their age.
//   - Until the shard has been read, a query fails: a name is never reported as missing because
//     nothing is known.
//   - It answers for one zone, resolves no other names, and lists none.
//   - By UDP no answer is longer than 1232 bytes.
//
// # What it does not do
//
// DNSSEC, delegation (there are no NS records: resolvers are configured to forward), reverse names.
package dnsserver
