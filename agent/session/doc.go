// Package session decides how an agent keeps its session with the shard: which replica to ask next
// and when, what a refusal means, when a report is due and when its answer is overdue.
//
// [Session] has no I/O, no clock, no goroutine and no randomness of its own. [Session.Step] takes
// the time and one event and returns orders, which the caller carries out in sequence;
// [Session.Wake] says when to call again if nothing happens before. The shell around it is package
// agent.
//
// # Invariants
//
//   - At most two streams exist: the serving one, which was welcomed, and an attempt. The session
//     leaves the serving one only for a welcome elsewhere, or when it has ended or was silent for a
//     whole lease (DET-14).
//   - Every stream has a higher epoch than all earlier ones, and Remember precedes the Open that
//     uses it (DET-18).
//   - Every wait ends: an attempt has a deadline, which a replica can extend once, and every report
//     has one.
//   - Times come from the caller and carry a monotonic reading; nothing here compares wall clocks.
//     The lease counts from before the hello, or the last acknowledged report, was sent (SAFE-9).
//
// # What it does not do
//
// It makes no connections, does not read reports or wanted states, and runs no workload.
package session
