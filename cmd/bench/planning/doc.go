// Package planning measures the leader's work: reading the shard's records, evaluating them as
// evidence, planning. It runs the leader's own code in one process and in virtual time, without
// agents and providers and, except for a cold start, without etcd: so its figures are of the
// planner alone, and a million instances need no million agents.
//
//	records.go the shard as stored in etcd, page by page: the same for the same size
//	leader.go  cache, evidence and planner, combined as in a term
//	changes.go changes of an instance or a group
//	cost.go    time, processor time and memory
//	coldstart.go a leader that starts from etcd alone
//	run.go     all of it in order, and the result
//
// # Invariants
//
//   - The same size gives the same records and the same plans; only their cost differs.
//   - Preparations are not measured: records are made and restored outside of the measurements.
//   - Processor time counts all threads of the process, garbage collection included. On a machine
//     with other work it is the figure to compare.
//
// # What it does not do
//
// It writes nothing, except for a cold start into an etcd of its own: the other benches measure a
// leader's transactions, its watch and its agents.
package planning
