// Package cluster is a whole Leasehold of real processes on one machine, with all faults that tests
// can cause in it and everything that they observe of it.
//
//	cluster.go   members of etcd, replicas, machines, their network, the witness
//	parties.go   their names and processes; starting them again
//	hosts.go     hosts of leasehold server, which are members and replicas in another way
//	groups.go    what its operators want, and the commands that they give
//	files.go     the files on its machines, and who should be in service in the end
//	harm.go      machines that are cut off or made unhealthy, recorded in the history
//	restore.go   etcd's data saved, restored, removed
//	damage.go    records deleted and spoiled by hand, and what an operator does about it
//	vitals.go    what its processes and its etcd use
//	ending.go    the end: faults end, everything becomes quiet, processes stop, leftovers are found
//
// # Invariants
//
//   - What is seen is seen from outside: by the provider, by a watcher beside etcd, by the kernel.
//     The coordinator is never asked.
//   - No process, mount or file outlives the test, however it ends. A run that failed keeps its
//     history, its logs, its journal and a snapshot of its etcd.
package cluster
