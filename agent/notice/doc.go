// Package notice watches for the word that a machine will be taken away: its cloud's interruption
// notice, or a file written on the machine (SPOT-1, DRAIN-3).
//
// A [Watcher] asks one source every two seconds and keeps the answer, so that a report never waits
// for it. It judges nothing and acknowledges nothing.
//
// # What the sources say
//
//	aws    IMDSv2: a token by PUT, then spot/instance-action. 404 is no notice, 401 is an expired
//	       token. A rebalance recommendation is no notice: it is a guess about many machines at
//	       once and sets no time.
//	gcp    instance/preempted TRUE: about 30s are left. instance/maintenance-event TERMINATE_…: the
//	       machine ends, at a time that is not given. A migration leaves it running and is none.
//	azure  scheduledevents of type Preempt or Terminate that name this machine: the answer has its
//	       neighbours' too. The first answer may take two minutes, since asking switches the
//	       service on.
//	file   any regular file, as JSON or as lines: kind, why, and in (from when it was written) or
//	       at. An empty one is a notice too.
//
// # Invariants
//
//   - Only an answer says anything. A source that fails, hangs or talks nonsense leaves what was
//     known as it was, and is logged once until it works again.
//   - The same notice seen again is the same: when it was first seen, and when the machine ends,
//     stay as they were.
//   - A notice that the source does not show any more is gone.
//   - Every request has a deadline, and what is read of an answer has a bound. No proxy is used and
//     no redirect followed: these are addresses of the machine's own host.
//   - How long is left is told by the source's own clock where it tells one, so the machine's may
//     be wrong.
package notice
