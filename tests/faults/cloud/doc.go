// Package cloud is a provider whose machines are real processes that can be hurt, and that writes
// down what is asked of it and what becomes of them.
//
// It runs in the process of the test and is served to the replicas of a coordinator on a socket, as
// tests/stage/swarm is. Each boot of a machine is a process `cast agent`, with a state directory
// and an address of its own; its workload is what the group wants to run.
//
//	cloud.go    who is there; serving, ending
//	front.go    calls as a replica makes them, and what is written of them
//	lie.go      answers to List that are not true
//	machine.go  a machine from being made until it is removed
//	boot.go     what runs in a boot, and how it is brought down
//	agent.go    the process of an agent
//	process.go  all processes of a machine: found, stopped, killed
//	harm.go     what can be done to a machine
//
// # Invariants
//
//   - What happens is written at the moment when it is true, and before anybody can know of it: a machine is made before its Create is answered, and removed
//     when nothing of it runs any more. Until then List shows it.
//   - Harm is written before it is done, and its end after it was ended.
//   - No process outlives its machine, and none the test: those that are left when Close returns are told of as an error, and a keeper ends
//     all if the test ends otherwise than in order. For this every process carries a mark in its environment, which workloads inherit.
//
// # What it does not do
//
// It has no network: who is cut off is the business of whoever has one, and is written with
// [Cloud.NoteHarm].
package cloud
