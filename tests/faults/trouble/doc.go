// Package trouble is the catalogue of faults of a cluster, and the plan that a seed makes of it.
//
//	trouble.go   what a fault is, and which parts of the cluster it needs
//	plan.go      which faults a seed chooses, when and for how long
//	play.go      causes them
//	replicas.go  coordinators killed, frozen, ended in order
//	etcd.go      members killed, frozen, wiped; quorum lost; compaction, alarms
//	network.go   cut both ways and one way, slow, lossy, reset
//	machines.go  machines crashed, frozen, cut off, unhealthy
//	provider.go  answers lost, late, slow; lists that lie
//	clocks.go    wall clocks that jump
//	disks.go     disks that are full, or take no writes
//	damage.go    etcd emptied or restored to an earlier state; records deleted and spoiled by hand
//	hosts.go     hosts of leasehold server killed, frozen, ended, cut off, replaced
//	operator.go  edits, orders, pauses, deletions in the middle
//
// # Invariants
//
//   - A seed gives the same plan each time. The target of a fault is chosen among what exists then,
//     by the fault's own random numbers.
//   - Every fault ends: the function that it returns undoes it, however the run goes.
//   - A machine's fault is recorded before it begins, and its end after it has ended.
package trouble
