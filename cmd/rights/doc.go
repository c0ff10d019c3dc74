// Package rights decides which users and roles etcd should have for a shard (SEC-4), and brings
// that about.
//
// # Invariants
//
//   - What is to be done is computed from what is there, so that it may be done again: a second run mends what is missing.
//   - Authentication is enabled last, and stays enabled only if root could log in afterwards: root is never locked out.
//   - Only roles that are the shard's are changed. Users and roles of others are left alone.
//
// It knows no passwords but those that it is given, and shows none.
package rights
