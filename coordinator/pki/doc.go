// Package pki is a shard's certificate authorities: their files, and what is issued from
// them.
//
//	files.go      how the authorities lie in their directory, and reading them
//	authority.go  the agents' authority at work in a coordinator
//	workloads.go  an authority for workloads' certificates at work in a coordinator
//	follow.go     files that change are read again
//	issue.go      certificates for agents and coordinators
//	own.go        the coordinator's own certificate, for handshakes
//	init.go       making the directory
//	operators.go  certificates of the other authority: for people, coordinators and servers of etcd
//	rotate.go     the steps in which one agents' authority follows another
//	write.go      writing files so that a crash leaves the old one or the new one
//
// # The two authorities
//
// The agents' authority signs both ends of agents' streams; coordinators have its key. The
// operators' authority signs those who speak to etcd and the servers that operators reach; its key
// is needed where certificates are issued by hand, and nowhere else. They are never one: what an
// agent or a coordinator can get for itself must open nothing in etcd.
//
// # Invariants
//
//   - No certificate outlives its issuer, or any certificate above that in the file.
//   - A certificate has the one use of its role, and agents' and coordinators' have no subject: it cannot be taken for a user's name.
//   - Of a request only the key is used. Whom the certificate names, the caller says.
//   - Files that cannot be read, or do not fit together, change nothing: what was in force stays so.
//   - A key that others than its owner may read is refused.
//
// # What it does not do
//
// It knows nothing of etcd: whether a step of a rotation would cut a machine or replica off, its
// caller must know. It revokes nothing: what must not be believed any longer ends, or its authority
// goes.
package pki
