// Package etcdstore is store.Store on an etcd cluster.
//
// One client carries reads, transactions, watches and vitals; leases have a client of their own,
// since everything on a connection shares its fate. Renewals run over a few raw keepalive streams
// that stay with etcd's leader (renewer.go, renewstream.go, leaderconn.go).
//
// # Invariants
//
//   - A write is reported as store.ErrUnavailable only if it never left this process, or if etcd
//     said that it did not do it. Every lost answer is store.ErrUnknown.
//   - A watch delivers each revision whole, once and in order, over any number of reconnections, or
//     ends with store.ErrCompacted or store.ErrDenied.
//   - A lease's end is counted from before its request was sent. A lease that has ended by that
//     count is never sent to etcd again: etcd would delay everything behind it on the stream
//     until it is revoked.
//   - Nothing renews a lease but a call of Renew.
//
// # What it does not do
//
// It knows no key of Leasehold's and nothing of records, keeps no cache and repeats no write. It
// does not judge etcd's health: it reports vitals, and a watch that went quiet stays quiet until
// etcd answers again.
package etcdstore
