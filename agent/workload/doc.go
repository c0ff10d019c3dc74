// Package workload runs a machine's workload, which is one command, and its drain hook.
//
// # Invariants
//
//   - The workload has its own process group, and is always ended as a whole group.
//   - It depends on nothing that dies with the agent: its output goes straight to a file, and its
//     process ID and start time are recorded, so that a restarted agent adopts it instead of
//     starting a second one.
//   - It is started at most once per boot, unless it was stopped on purpose: when it ends by
//     itself, the coordinator decides what happens to the machine, not the agent.
//   - Its record, and the record of a hook that runs, are written in the background, and the last
//     output is read with a short time limit: a disk that hangs delays no kill and no report of an
//     end. A disk operation that completes too late starts nothing.
//   - The workload's process is held back until its record is written, so that after a kill of the
//     agent the next one does not start a second workload. If the disk hangs, it is held back for
//     one second at most.
//   - The output file is bounded. It is cut once a second, so a very fast writer may exceed the
//     limit for that long.
//   - A record that cannot be read may name a running process: until it can be read, nothing is
//     started and nothing counts as stopped.
//   - A drain hook runs at most once per drain and boot, even if the agent is restarted: it is
//     recorded before it is started, unless the disk refuses the write. It is killed when its time
//     is over or its drain is canceled. The workload continues to run beside it.
//
// # What it does not do
//
// It restarts nothing on its own, checks only whether the process runs, and sends no reports: see
// [Runner.State] and [Runner.Changed].
//
// The exit code of an adopted workload is unknown if it is not a child of this process: it is
// reported as -1. It is a child if the agent that started it has become this one, by exec.
package workload
