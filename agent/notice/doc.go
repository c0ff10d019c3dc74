// Package notice watches for notices that a machine will be taken away: its cloud's interruption
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
//   - Only an answer changes what is known. A source that fails, hangs or sends garbage changes
//     nothing, and is logged once until it works again.
//   - A notice that is seen again keeps the time at which it was first seen and the time at which
//     the machine ends.
//   - A notice is gone once the source no longer shows it.
//   - Every request has a deadline, and the answer a limit. Requests use no proxy and follow no
//     redirect: these are addresses of the machine's own host.
//   - The time left is computed with the source's clock where the source sends it, so the machine's
//     clock may be wrong.
package notice
