// Package etcdops does to an etcd what operators and accidents do.
//
//	etcd.go       its members, how they are asked, and how each is doing
//	operate.go    leader moved, history compacted, file defragmented, alarm raised and taken back
//	membership.go a member that lost its data is taken in again
//	snapshot.go   a snapshot saved, and data restored from it
//
// It speaks to members where they serve clients, directly, on a connection of its own for each act.
// It starts and stops no process: the owner of the members kills one before its data are touched,
// and starts it again.
//
// What cannot be done yet, because there is no leader or a member does not know the others for long
// enough, is tried again until the context ends. All else that fails is an error at once.
package etcdops
