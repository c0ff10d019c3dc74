// Package checks does an instance's application checks and keeps the verdict of each (DET-9).
//
// [Verdict] is the part that decides: a value without I/O or clock, told one result after the
// other. [Runner] is the shell: a goroutine for each check, which runs its probe, waits, and tells
// the result.
//
// # Invariants
//
//   - A check never waits for another one, and [Runner.States] never waits for a check.
//   - Two runs of one check never overlap: one that does not end when its time is over counts as a
//     failure there and then, and as another one each interval, and no further one is begun before
//     it has ended.
//   - A verdict changes only after a threshold of equal results in a row. A check that is new on an
//     instance begins with a verdict that its caller assumes: unhealthy where the instance has yet
//     to get healthy, else the instance's.
//   - What a probe reads is bounded, and nothing of it is left when it has ended: connections are
//     closed, processes killed with their group.
//   - Why a check fails reads the same for the same cause: addresses and times that differ from run
//     to run are not in it.
//   - Close returns when no goroutine is left.
//
// # What it does not do
//
// It does not look at the workload's own process, which package workload watches, and draws no
// conclusion about the instance: the agent does.
package checks
