// Package sim is a shard in virtual time: a database, replicas, machines, agents, operators
// and all that can go wrong with them, around the real cache, the real evidence, the real planner
// and the real leader. `leasehold simulate` shows it to people, and the simulation tests try in it
// what no test on a real clock has the time for.
//
//	world.go      the world, and how it goes on
//	config.go     what it begins with
//	agenda.go     what will happen, in order
//	database.go   keys, revisions, leases
//	replica.go    replicas, elections, terms that end
//	term.go       a term: the shell that steps leader.Leader
//	carry.go      the leader's commands; transactions
//	calls.go      provider calls
//	cloud.go      providers: package fake, and the agents on its machines
//	balancer.go   load balancers
//	agent.go      agents and what their gateways write
//	checks.go     what their checks say, by interval and threshold
//	wanted.go     what agents are told
//	operator.go   edits and orders
//	faults.go     what can go wrong with machines and agents
//	trouble.go    what can go wrong with providers and their lists
//	leadership.go what can go wrong with replicas and etcd
//	interfere.go  what happens in the last moment before a commit
//	load.go       what groups have to do, and what their agents tell of it
//	truth.go      what is really so in the world
//	observer.go   what is told to those who watch
//
// # Invariants
//
//   - The same seed and the same calls give the same run to the byte: one source of
//     chance, no clock, no goroutine, no order of a map.
//   - Whatever the coordinator does between two exchanges with the world, it may die there.
//   - There is no event for each report. An agent is known by when its state changes,
//     and by when its lease ends once it is silent.
//
// # What it does not do
//
// It judges no plan: that is for those who watch.
package sim
