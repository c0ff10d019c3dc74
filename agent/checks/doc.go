// Package checks runs an instance's application checks and keeps the verdict of each (DET-9).
//
// [Verdict] decides: a value without I/O or clock that takes one result after the other. [Runner]
// is the shell: a goroutine for each check, which runs its probe, waits, and passes on the result.
//
// # Invariants
//
//   - A check never waits for another one, and [Runner.States] never waits for a check.
//   - Two runs of one check never overlap. A run that exceeds its timeout counts as a failure at
//     once, and as another failure each interval; the next run begins only when it has ended.
//   - A verdict changes only after a threshold of equal results in a row. A new check begins with a
//     verdict that its caller assumes: unhealthy if the instance is not healthy yet, else the
//     instance's.
//   - A probe reads a limited amount and leaves nothing behind: it closes connections, and kills
//     processes with their group.
//   - The same cause always gives the same text: it contains no addresses or times that differ
//     between runs.
//   - Close returns when no goroutine is left.
//
// # What it does not do
//
// It does not watch the workload's own process (package workload does), and draws no conclusion
// about the instance (the agent does).
package checks
