// Package pki implements a shard's certificate authorities: their files, and the certificates that
// they issue.
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
// operators' authority signs clients of etcd and the servers that operators use; its key is needed
// only where certificates are issued by hand. The two are always separate: certificates that an
// agent or a coordinator can get by itself must give no access to etcd.
//
// # Invariants
//
//   - No certificate outlives its issuer, or any certificate above that in the file.
//   - A certificate has the one use of its role, and agents' and coordinators' have no subject: it
//     cannot be taken for a user's name.
//   - Of a request only the key is used. The caller chooses the name in the certificate.
//   - Files that cannot be read, or do not match each other, change nothing.
//   - A key that users other than its owner may read is refused.
//
// # What it does not do
//
// It knows nothing about etcd: its caller must know whether a step of a rotation would disconnect a
// machine or replica. It revokes nothing: a certificate loses its trust when it expires, or when
// its authority is removed.
package pki
