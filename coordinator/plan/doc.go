// Package plan decides. Compute is one pure function from a Snapshot and a time to a Plan: no I/O,
// no clock, no goroutine, no logging, no order of a map. The leader, the dry run, the simulator and
// the tests all call the same function.
//
// # How a plan is made
//
// A group is planned alone. Its spec is settled first (accept.go), then each instance is judged on
// the evidence (judge.go), then deciders run in the order of REC-5, each in the file named after
// what it decides:
//
//	progress.go  phases that follow from facts: created, registered, healthy
//	orders.go    operators' requests
//	remove.go    deletions that are complete
//	heal.go      dead, failed and condemned instances
//	count.go     too many, too few
//	status.go    what status/<group> shall say
//	calls.go     what is to be asked of the provider
//
// They share a draft (draft.go): the group as it will be once the actions decided so far have
// happened. Budgets are counted on the draft, hence from phases alone.
//
// # Invariants
//
//   - An action is one transaction, or part of one with others like it (batch.go). It compares every record it changes and every
//     key of its evidence (SAFE-4); the leader adds the leader's fence and the journal entry.
//   - A record is changed by one action of a plan at most; what follows from the change is decided
//     on the next cache.
//   - The records are the truth: a plan made after a crash at any point leads to the same end.
//   - Nothing is destroyed, and no instance judged lost, on a stale cache or in the time of grace.
package plan
