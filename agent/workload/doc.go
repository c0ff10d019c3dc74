// Package workload runs the one command that a machine exists for, and the drain hook by which it
// is left.
//
// # Invariants
//
//   - The workload has its own process group, and is always ended as a whole group.
//   - It depends on nothing that dies with the agent: its output goes straight to a file, and its
//     process ID and start time are recorded, so that a restarted agent takes it up again instead
//     of starting a second one.
//   - It is started at most once per boot, unless it was stopped on purpose: when it ends by
//     itself, the coordinator decides what happens to the machine, not the agent.
//   - Its record, and the record of a hook that runs, are written in the background, and the last
//     output is read for a moment only: a disk that hangs delays no kill and no report of an end.
//     What the disk lets through too late starts nothing.
//   - The workload's process is held back until its record is written, so that an agent that is
//     killed meanwhile is not followed by one that starts a second; but not for longer than a
//     second, where the disk hangs.
//   - The file of its output is bounded; it is cut once a second, so a very fast writer may be over
//     for that long.
//   - A record that cannot be read may name a process that runs: nothing is started beside it, and
//     nothing counts as stopped, until it can be read.
//   - A drain hook is run at most once per drain and boot, whatever becomes of the agent meanwhile:
//     it is recorded before it is started, unless the disk refuses that. It is killed when its time
//     is over or its drain is called off. The workload goes on beside it.
//
// # What it does not do
//
// It restarts nothing of itself, checks no health beyond "it runs", and reports nothing: see
// [Runner.State] and [Runner.Changed].
//
// The exit code of a workload that was taken up again cannot be known, since it is no child of this
// process any more: it is reported as code -1.
package workload
