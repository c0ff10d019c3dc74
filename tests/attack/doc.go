// Package attack tries to get at a shard, in every way that docs/security.md names, while two
// hundred honest agents report to it. Each try must be refused and recorded, must change nothing,
// and no honest agent may lose its lease for it. What operators may not do is tried in
// cmd/leasehold and store/etcdstore, HTTP in coordinator/web.
//
//	siege_test.go     the shard under attack, and what must not have happened
//	attacker_test.go     an attacker with a network address and found or forged certificates
//	identity_test.go  certificates that are forged, not yet valid, expired or another's
//	join_test.go      tokens
//	bounds_test.go    what is too much, too often, too slow or no message at all
//	files_test.go     malicious files that an operator applies
//	flood_test.go     too many, all at once
//	rotation_test.go  certificates that last seconds, and an authority that is exchanged under way
//	etcd_test.go      an agent at etcd
//
// # Invariants
//
//   - The programs are the product's, as processes; the attacker is code of these tests, and speaks
//     from addresses of its own (127.0.0.0/8), so that what is recorded of one try is not summed up
//     with another's.
//   - What happened is read from etcd's records and history, not from what a program says.
//   - A try that is not refused fails the test, and so does one that is not recorded.
package attack
