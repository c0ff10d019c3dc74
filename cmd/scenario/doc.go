// Package scenario reads scenarios, plays them on groups in virtual time, and reports the result.
// `leasehold simulate` shows it.
//
//	scenario.go  what a scenario is
//	read.go      reading one from YAML; fields.go and sections.go go through its fields
//	kinds*.go    the kinds of events, with their fields
//	target.go    the instances that an event affects
//	default.go   the scenario that is played if none is given
//	run.go       playing one
//	recorder.go  what happened; availability.go how the groups did
//	timeline.go  the timeline, with repetitions summed up
//	result.go    the result; expect.go the expectations
//	runs.go      the same with many seeds
//
// # Invariants
//
//   - The same groups, scenario and seed give the same result to the byte.
//   - Every problem of a file is reported at its line and column, all at once. Nothing is ignored.
//   - The leader's own planner and evidence decide (coordinator/sim): this package decides nothing.
//
// # What it does not do
//
// It does not know etcd or the present state of a group, and prints nothing.
package scenario
