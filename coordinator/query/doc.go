// Package query is the contract for numbers from outside: what a group's size or an analysis asks
// for, and what is known of the answers. Package source has what answers. The sources stand in the
// replica's own configuration; groups only name them (SEC-7).
//
// # Invariants
//
//   - The leader alone asks, beside its decisions: no decision waits for an answer.
//   - An answer is one finite number, or an error. A number is known only with its age, which
//     counts from when it was asked for.
//   - A number that is missing or old is not known. It is never taken for zero.
package query
