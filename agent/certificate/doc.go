// Package certificate holds an agent's credentials: the machine's key, the certificate over it and
// the authorities it trusts, in one file of the agent's state directory.
//
// The machine makes its keys, and no key leaves it. The first certificate is issued for the join
// token of the bootstrap document (SEC-2). Each later one is for a new key, and the agent requests
// it on its stream long before the present one expires (SEC-3).
//
// # Invariants
//
//   - Key, certificate and trusted authorities are one value and one file, replaced as a whole. A
//     crash leaves the old file or the new one.
//   - A key pair is written before it is used. The key of a join is written before the request is
//     sent, so a join whose answer was lost is repeated with the same key. If the disk fails, or
//     does not answer for a second, nothing waits for it: the file is written later, and the log
//     says so.
//   - An answer that does not match the requested key, this instance or a trusted authority changes
//     nothing.
//   - Every connection uses the credentials that are in force when it is made.
//   - Only Open, Join and Run wait for the disk.
//
// The package makes no connections: the caller of Join sends the request to a replica. It decides
// when to renew, not on which stream.
package certificate
