// Package stage is an etcd, replicas of the coordinator and a swarm of real agents, each a process
// of its own on the loopback address, for tests in which something goes wrong between them.
//
//	programs.go  builds the programs once, one of them with a wall clock that can be wrong
//	main.go      runs the tests of a package with them
//	program.go   a process of a stage
//	stage.go     the processes of a stage, and waiting
//	members.go   members of etcd, replicas, and relays between them
//	servers.go   hosts of leasehold server in the place of members and replicas
//	actor.go     a member or a replica, whether it is a program or a part of a host
//	records.go   counts what was done, from etcd's own records
//	cast/        the programs beside leasehold itself
//	swarm/       many machines in one process, with their agents or with another release's
//
// # Invariants
//
//   - Every process is a real one, and replicas are wired as leasehold coordinator is. Nothing in
//     them is replaced but the provider.
//   - What was done is counted from etcd's records and its journal, never from what the coordinator
//     says.
//   - No process outlives the test, however it ends.
//   - A test that failed keeps its directory (journal, logs of all programs), and says which
//     command repeats it.
package stage
