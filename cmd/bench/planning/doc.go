// Package planning measures what a leader does with what it sees: reading the shard's records,
// taking them for evidence, planning. It is the leader's own code in one process, with neither
// agents nor a provider and, but for a cold start, no etcd, in virtual time: so its figures are of
// the planner alone, and a million instances need no million agents.
//
//	records.go the shard as etcd would hold it, page by page: the same for the same size
//	leader.go  cache, evidence and planner, put together as a term does it
//	changes.go what happens to an instance or a group, one at a time and many at once
//	cost.go    time, processor time and memory
//	coldstart.go a leader that begins with nothing but an etcd
//	run.go     all of it in order, and the result
//
// # Invariants
//
//   - The same size makes the same records and the same plans; only what they cost differs.
//   - What is measured has nothing of the measuring in it: records are made, and put back as they were, outside of it.
//   - Processor time counts all threads of the process, garbage collection included. On a machine with other work it is the figure to
//     compare; the elapsed time says how long callers had to wait there.
//
// # What it does not do
//
// It writes nothing, but for a cold start into an etcd that is the bench's own: a leader's
// transactions, its watch and its agents are what the other benches are for.
package planning
