// Package cloud is a provider whose machines are real processes in which tests cause faults. It
// records its calls and what happens to its machines.
//
// It runs in the process of the test and is served to the replicas of a coordinator on a socket, as
// tests/stage/swarm is. Each boot of a machine is a process `cast agent`, with a state directory
// and an address of its own; its workload is what the group wants to run.
//
//	cloud.go    the machines; serving, closing
//	front.go    a replica's calls, and their record
//	machine.go  a machine from its creation to its deletion
//	boot.go     the processes of a boot, and their end
//	agent.go    the process of an agent
//	process.go  all processes of a machine: found, stopped, killed
//	harm.go     faults of a machine
//	balancer.go the load balancer, its members and its faults
//	files.go    the files that agents keep on machines
//
// # Invariants
//
//   - Events are recorded when they happen, and before they are visible: a machine is created
//     before its Create is answered, and deleted
//     when no process of it runs any more. Until then List shows it.
//   - A fault is recorded before it is caused, and its end after it has ended.
//   - No process outlives its machine, and none the test: those that are left when Close returns
//     are reported as an error, and a keeper ends
//     all if the test ends otherwise than in order. For this every process carries a mark in its environment, which workloads inherit.
//
// # What it does not do
//
// It has no network: the caller cuts machines off, and records that with [Cloud.NoteHarm].
package cloud
