// Package evidence is what a term knows and cannot be read from etcd: since when things are as they
// are, what providers listed, how calls went, and which groups are to be planned when. Together
// with the cache it makes the planner's snapshot.
//
//	evidence.go   what is kept, and disturbances
//	seen.go       what the cache shows, and when it was first seen
//	timers.go     timers of records on our own clock, and the time without a leader
//	clock.go      whether our own clock was set
//	lists.go      what providers list
//	calls.go      how provider calls went
//	due.go        which groups are to be planned, and when
//	tallies.go    the losses of each group
//	spec.go       what operators want of a group
//	requests.go   which instances the requests of operators concern
//	agents.go     the versions of agents
//	damage.go     records that are lost or unreadable, and machines without one
//	limits.go     the limits of the shard, and what counts in them
//	load.go       the load of groups; readings.go: numbers from outside
//	refusals.go   what a provider refuses to all of a kind
//	sharing.go    what groups that share a budget have down
//	standing.go   what is shown of the shard
//	traffic.go    what load balancers say
//	snapshot.go   all of it, put together for the planner
//
// # Invariants
//
//   - It has no clock, no chance, no I/O and no goroutine of its own: time, jitter and what acts on
//     its findings come with its Config. So the same code serves a leader and a simulation in
//     virtual time.
//   - What it answers depends only on what it was told, in which order, and when: never on the
//     order of a map.
//   - All its times are of one clock, Config.Now. A time in a record is compared with the wall
//     clock once, when it is first seen, and never more than a wait depends on it.
//   - It believes nothing that it did not see. A new leader's begins empty.
//   - Its methods may be called concurrently at any time. Those that take a content need it locked
//     against change.
//   - To plan one group again costs what that group costs, however large the shard is.
//
// # What it does not do
//
// It judges nothing (package plan) and carries nothing out (package coordinator).
package evidence
