// Package replay plays the past of groups against another policy, in virtual time and with the
// coordinator's own planner (AUTO-4). It answers questions such as: what would last month have been
// with other budgets?
//
//	tape.go    the events, in order, from the journal and the summaries of days
//	play.go    plays it in a world of package sim
//	outcome.go the outcome, computed as a report is
//
// # Invariants
//
//   - The same past, groups and seed give the same outcome.
//   - The same code (coordinator/review) computes the past, the control and the policy in question,
//     so that they can be compared.
//   - The result says what cannot be known.
package replay
