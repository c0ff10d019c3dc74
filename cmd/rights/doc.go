// Package rights decides which users and roles etcd should have for a shard (SEC-4), and brings that about.
//
// # Invariants
//
//   - What is to be done is computed from what is there, so that it may be done again: a second run mends what is missing.
//   - Authentication is turned on last, and only stays on if somebody got in as root afterwards: nobody is locked out.
//   - Only roles that are the shard's are changed. Users and roles of others are left alone.
//
// It knows no passwords but those that it is given, and shows none.
package rights
