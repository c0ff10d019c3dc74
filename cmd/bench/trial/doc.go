// Package trial plays with a whole shard at once: an etcd, replicas of the coordinator and a crowd
// of agents, each a process of its own, and tells what became of it.
//
//	trial.go     what all trials share: beginning, replicas, crowds, the end
//	observer.go  what etcd shows of it
//	crowds.go    the agents, in one process or several
//	usage.go     what the processes use
//	scrape.go    what a replica tells of itself
//	figures.go   how results are told
//	agents.go    how many agents a shard carries, and how soon a failure of one is seen
//	failover.go  a replica is killed
//	storm.go     many agents are lost at once
//	verdict.go   what follows for the machine at hand
//
// # Invariants
//
//   - The product is what is shipped: its command, its protocol, its leases; an etcd that syncs its disk.
//   - An etcd with shards in it is used only if that was said to be meant, and what was written is taken out again, also after Ctrl-C.
//   - A failure is what the bench did to an agent. Whatever else the coordinator takes for one is a false positive.
//   - Nothing is left running.
package trial
