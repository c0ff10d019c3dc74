// Package cluster is a whole Leasehold of real processes on one machine, with everything that can
// be done to it and everything that is seen of it.
//
//	cluster.go   members of etcd, replicas, machines, the network between them, the witness beside them
//	parties.go   who they are, dead or alive; starting them again
//	groups.go    what its operators want, and the commands that they give
//	harm.go      machines cut off and made sick, told to the history
//	restore.go   etcd's data saved, restored, removed
//	damage.go    records deleted and spoiled by hand, and what an operator does about it
//	vitals.go    what its processes and its etcd use
//	ending.go    everything healed, quiet awaited, everything ended, and what is left
//
// # Invariants
//
//   - What is seen is seen from outside: by the provider, by a watcher beside etcd, by the kernel. Nobody asks the coordinator.
//   - No process, mount or file outlives the test, however that ends. A run that failed keeps its history, its logs, its journal and a snapshot of its etcd.
package cluster
