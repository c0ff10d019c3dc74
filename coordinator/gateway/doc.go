// Package gateway serves agents' streams on one replica, leader or not: it says who may speak, renews leases by
// reports, keeps the state of each stream in alive/<id>, and persists reports.
//
//	gateway.go      the sessions there are, and what they share
//	watcher.go      what etcd shows of them
//	session.go      one stream, from its hello to its end
//	admission.go    when one may begin
//	alive.go        its key in etcd and the lease that hangs on; together.go: those of many, written together
//	report.go       what an agent reports, and what of it is to be written down; notes.go: that of many together
//	lastwords.go    the last of a workload's output
//	wanted.go       what an agent is told: checks.go, secrets.go
//	credentials.go  TLS: who is at the other end of a connection
//	join.go         a token for the first certificate
//	proof.go        a session's certificate, its renewal and its end, and whom agents are to believe; trust.go: whom other replicas do
//	options.go      the bounds of the server; frames.go, of a message before it is read; slow.go, of who does not read
//	offence.go      what no agent does; conduct.go: for how long who does it is kept out
//	refusals.go     writing down who was refused, in bounded space
//	unwanted.go     agents without a record, and second boots
//
// # Invariants
//
//   - A lease is renewed by an accepted report and by nothing else (DET-2).
//   - alive/<id> is written in a transaction that compares the instance's record (unchanged, before deleting)
//     and the alive key as read, whose epoch must not be newer (DET-18). So a replica that lost an
//     agent can never overwrite the new session, and an agent's return races with the leader's
//     decision on revisions.
//   - A key deleted under an open stream is put back on a new lease, if the last report was accepted less than lease_ttl
//     ago by our own monotonic clock (DET-17).
//   - An agent is told what its record wants of it after its welcome and on every change of that, and never what an
//     older record wanted: a picture may be behind what another replica has told it.
//   - With an [Authority] a stream is of the instance that its certificate names, and ends with the newest certificate that is known
//     for it (SEC-1). Of all who use a join token at once, on whatever replica, exactly one gets a certificate (SEC-2).
//   - Whoever is refused is told no more than he knew; why it was is in the journal, in bounded space (SEC-5).
//   - Nothing of one agent's can hold up another's: each stream waits on its own goroutine, with deadlines.
//
// # What it does not do
//
// It judges no instance, and it does not speak to other replicas: all they share is etcd.
package gateway
