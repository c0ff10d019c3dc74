// Package rights decides which users and roles etcd should have for a shard (SEC-4), and applies
// them.
//
// # Invariants
//
//   - Steps are computed from the present state, so they may be repeated: a second run adds what is
//     missing.
//   - Authentication is enabled last, and stays enabled only if root could log in afterwards: root
//     is never locked out.
//   - Only roles that are the shard's are changed. Users and roles of others are left alone.
//
// It knows only the passwords that it is given, and shows none.
package rights
