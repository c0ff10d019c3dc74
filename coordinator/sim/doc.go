// Package sim simulates a shard in virtual time: a database, replicas, machines, agents, operators
// and everything that can go wrong with them, around the real cache, evidence, planner and leader.
// `leasehold simulate` shows it to people, and the simulation tests cover with it what would take
// too long on a real clock.
//
//	world.go      the world, and how time passes
//	config.go     its initial state
//	agenda.go     future events, in order
//	database.go   keys, revisions, leases
//	replica.go    replicas, elections, terms that end
//	term.go       a term: the shell that steps leader.Leader
//	carry.go      the leader's commands; transactions
//	calls.go      provider calls
//	cloud.go      providers: package fake, and the agents on its machines
//	balancer.go   load balancers
//	agent.go      agents and what their gateways write
//	checks.go     what their checks say, by interval and threshold
//	wanted.go     the wanted state that agents receive
//	operator.go   edits and orders
//	faults.go     what can go wrong with machines and agents
//	trouble.go    what can go wrong with providers and their lists
//	leadership.go what can go wrong with replicas and etcd
//	interfere.go  changes just before a commit
//	load.go       groups' load, and their agents' reports of it
//	calm.go       such reports while nothing happens to a group
//	truth.go      the true state of the world
//	observer.go   callbacks for observers
//
// # Invariants
//
//   - The same seed and the same calls give the same run to the byte: there is one source of
//     randomness, and no clock, goroutine or map order matters.
//   - The coordinator may die between any two exchanges with the world.
//   - Reports are not events. Only changes of an agent's state are, and the end of its lease once
//     it is silent.
//
// # What it does not do
//
// It judges no plan: its users do.
package sim
