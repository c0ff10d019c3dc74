// Package query is the contract for external metrics: the numbers that a group's size or an
// analysis needs, and the state of the answers. Package source implements the sources. They are
// defined in the replica's own configuration; groups only name them (SEC-7).
//
// # Invariants
//
//   - Only the leader queries, in parallel with its decisions: no decision waits for an answer.
//   - An answer is one finite number, or an error. A number is known only with its age, which
//     counts from when it was requested.
//   - A missing or old number is unknown. It never counts as zero.
package query
