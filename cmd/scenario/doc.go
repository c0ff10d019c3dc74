// Package scenario reads what is to happen to groups, plays it in virtual time, and tells what
// came of it. It is what `leasehold simulate` shows.
//
//	scenario.go  what a scenario is
//	read.go      reading one from YAML; fields.go and sections.go go through its fields
//	kinds*.go    what may happen, each kind with its fields
//	target.go    to whom
//	default.go   the scenario that is played if none is given
//	run.go       playing one
//	recorder.go  what happened; availability.go how the groups did
//	timeline.go  what happened, in order, with repetitions summed up
//	result.go    what came of it; expect.go whether that is as it should be
//	runs.go      the same with many seeds
//
// # Invariants
//
//   - The same groups, scenario and seed give the same result to the byte.
//   - Whatever is wrong in a file is reported at its line and column, everything at once. Nothing is ignored.
//   - What is played is the leader's own planner on its own evidence (coordinator/sim): nothing is decided here.
//
// # What it does not do
//
// It knows no etcd and no present state of a group, and prints nothing.
package scenario
