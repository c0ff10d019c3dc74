// Package server is the command "server": a host that is an etcd member and a replica of the
// coordinator (DAY-1).
//
//	command.go    flags, and what a start does with what it finds in the data directory
//	place.go      the data directory, and what this host has recorded about itself and the others
//	begin.go      the first host: authorities, rights, the shard
//	invite.go     tokens with which others join
//	join.go       a host that joins: asks to be let in, becomes a learner, is promoted
//	admit.go      the host that lets it in, at the agents' port
//	admin.go      changes of the cluster by an operator
//	follow.go     what changes while a host runs
//	member.go     the etcd member, a process of its own
//	replica.go    the replica, another
//	run.go        runs both parts, completes a first start, and tells systemd
//	supervise.go  keeps a part running
//	pipe.go       what a part tells the supervisor
//
// # Invariants
//
//   - Only --init creates a cluster and a shard, and only in a directory without one. A host whose
//     data is gone joins the others again (SAFE-15).
//   - The end of one part, for whatever reason, ends no other part.
//   - Each step of a first start is on disk before the next begins, so that an interrupted start
//     resumes where it was.
package server
