// Package replay plays what happened to groups in the past against a policy, in virtual time and
// with the coordinator's own planner (AUTO-4): what a month would have been with other budgets.
//
//	tape.go    what happened, in order, from the journal and the summaries of days
//	play.go    plays it in a world of package sim
//	outcome.go what came of it, computed as a report is
//
// # Invariants
//
//   - The same past, groups and seed give the same outcome.
//   - What was, the control and the policy in question are computed by the same code
//     (coordinator/review), so that they can be compared.
//   - What cannot be known is said.
package replay
