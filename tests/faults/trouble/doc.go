// Package trouble is what can be done to a cluster: the catalogue, and the plan that a seed makes
// of it.
//
//	trouble.go   what a trouble is, and what it may take
//	plan.go      which troubles a seed chooses, when and for how long
//	play.go      has them happen
//	replicas.go  coordinators killed, frozen, ended in order
//	etcd.go      members killed, frozen, wiped; quorum lost; compaction, alarms
//	network.go   cut both ways and one way, slow, lossy, reset
//	machines.go  machines crashed, frozen, cut off, sick
//	provider.go  answers lost, late, slow; lists that lie
//	clocks.go    wall clocks that jump
//	disks.go     disks that are full, or take no writes
//	damage.go    etcd emptied or put back to before; records deleted and spoiled by hand
//	operator.go  edits, orders, pauses, deletions in the middle
//
// # Invariants
//
//   - A seed gives the same plan each time. Whom a trouble hits is chosen from who is there then, by the trouble's own random numbers.
//   - Every trouble ends: what it did is undone by what it returns, however the run goes.
//   - What is done to a machine is told to the history as harm before it is done, and as over after it is.
package trouble
