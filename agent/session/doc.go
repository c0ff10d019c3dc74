// Package session decides how an agent keeps its session with the shard: which replica comes next,
// how long to wait before it is asked, what a refusal means, when a report is due and when its
// answer is overdue.
//
// [Session] has no I/O, no clock, no goroutine and no randomness of its own. [Session.Step] takes
// the time and one event and returns orders, to be carried out in the order in which they stand;
// [Session.Wake] says when to come back if nothing happens before. The shell around it is package
// agent.
//
// # Invariants
//
//   - At most two streams exist: one that serves (it was welcomed) and one that is tried. The
//     serving one is let go only for a welcome elsewhere, or when it ended, or was silent for a
//     whole lease (DET-14).
//   - Every stream has an epoch above all before it, and Remember stands before the Open that uses
//     it (DET-18).
//   - Every wait ends: a stream that is tried has a deadline, which a replica can put off once, and
//     so has every report.
//   - Times come from the caller and carry a monotonic reading; nothing here compares wall clocks.
//     The lease's end is counted from before the hello, or from before the last acknowledged
//     report, was sent (SAFE-9).
//
// # What it does not do
//
// It knows nothing of connections, of what a report says, of what a replica wants, or of how a
// workload is run.
package session
