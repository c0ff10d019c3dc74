// Package evidence holds what a leader knows that is not in etcd: since when each fact holds, what
// providers listed, how calls went, and which groups must be planned when. Together with the cache
// it makes the planner's snapshot.
//
//	evidence.go   what is kept, and disturbances
//	seen.go       what the cache shows, and when it was first seen
//	timers.go     timers of records on our own clock, and the time without a leader
//	clock.go      whether our own clock was set
//	lists.go      what providers list; extras.go: machines without a record, as operators see them
//	calls.go      how provider calls went
//	due.go        which groups are to be planned, and when
//	tallies.go    the losses of each group
//	spec.go       what operators want of a group
//	requests.go   which instances the requests of operators concern
//	agents.go     the versions of agents; providers.go: what coordinators are configured with
//	damage.go     records that are lost or unreadable, and machines without one
//	limits.go     the limits of the shard, and what counts in them
//	load.go       the load of groups; loads.go: of many instances at once, in simulations;
//	              readings.go: numbers from outside
//	refusals.go   what a provider refuses to all of a kind
//	outages.go    since when a provider fails, whatever the template is
//	sharing.go    what groups that share a budget have down
//	extras.go     machines that their provider did not make
//	counts.go     machines without a record, records without a machine
//	traffic.go    what load balancers say; places.go: addresses that are used again
//	snapshot.go   all of it, put together for the planner
//
// # Invariants
//
//   - It has no clock, no randomness, no I/O and no goroutine of its own: time, jitter and
//     callbacks come with its Config. So the same code serves a leader and a simulation in virtual
//     time.
//   - Its answers depend only on its inputs, their order and their times: never on the order of a
//     map.
//   - All its times are of one clock, Config.Now. A time in a record is compared with the wall
//     clock once, when it is first seen, and only a wait ever depends on it.
//   - It contains only what it has seen. A new leader starts with empty evidence.
//   - Its methods may be called concurrently at any time. Those that take a content need it locked
//     against change.
//   - Planning one group again costs what that group costs, whatever the size of the shard.
//
// # What it does not do
//
// It judges nothing (package plan does) and executes nothing (package coordinator does).
package evidence
