// Package trial runs a whole shard: an etcd, replicas of the coordinator and a crowd of agents,
// each a process of its own, and measures it.
//
//	trial.go     what all trials share: start, replicas, crowds, end
//	observer.go  what etcd shows of it
//	crowds.go    the agents, in one process or several
//	crowd_process.go  one such process
//	usage.go     what the processes use
//	scrape.go    a replica's metrics
//	figures.go   the form of results
//	agents.go    how many agents a shard carries, and how soon a failure is noticed
//	failover.go  a replica is killed
//	storm.go     many agents are lost at once
//	verdict.go   conclusions for this machine
//
// # Invariants
//
//   - The product is what is shipped: its command, its protocol, its leases; an etcd that syncs its
//     disk.
//   - An etcd with shards in it is used only with --used-etcd, and what was written is removed,
//     also after Ctrl-C.
//   - A failure is what the bench did to an agent. Every other verdict of a failure is a false
//     positive.
//   - Nothing is left running.
package trial
