// Package gateway serves the agents' protocol on one replica, leader or not. It decides whose
// stream is accepted, renews leases on reports and heartbeats, keeps the state of each stream in
// alive/<id>, and persists reports.
//
//	gateway.go       the sessions of this replica, and what they share
//	watcher.go       changes in etcd that concern them
//	session.go       one stream, from hello to end
//	registration.go  whether the stream is accepted, and its first write
//	alive.go         its key in etcd: changed, and put back with a new lease
//	state_writer.go  states of many streams in one transaction
//	report.go        reports: renewal of the lease, and what is persisted
//	report_writer.go reports of many agents in one transaction
//	lastwords.go     the last output of a workload
//	wanted.go        what an agent should do: checks.go, secrets.go
//	outbox.go        messages that answer none of the agent's
//	credentials.go   TLS: the identity of a client
//	join.go          a token in exchange for the first certificate
//	proof.go         a session's certificate, its renewal and its end; what agents are to trust
//	trust.go         the authorities that other replicas trust
//	options.go       the bounds of the server
//	codec.go         decoding messages
//	violations.go    what happens to an agent that breaks the protocol
//	send_timeout.go  agents that do not read; call_timeout.go: timeouts of exchanges with etcd
//	unwanted.go      agents without a record, and second boots
//
// What a client can take is bounded by coordinator/guard.
//
// # Goroutines and locks
//
// An agent's stream has one goroutine of its own, gRPC's, which reads its messages and answers them
// (session.serve). It holds session.mu while it handles one. Everything else reaches the agent
// through the session's outbox, which a few senders for all sessions empty (senders.run): a sender
// takes session.mu, or leaves the outbox to the goroutine that has it.
//
// On other goroutines, for which the gateway waits when it ends (Gateway.spawn), run the write that
// a report is overdue (becomeOverdue) or the stream lost (lost), looks at etcd after the cache
// showed something unexpected (restore, recheck, judge), and the writes of reports, in batches for
// many sessions (reportWriter). They never take session.mu.
//
// What exchanges something with etcd about alive/<id>, its lease or the record holds
// session.exchange, so that a session's writes are in order. Locks are taken in this order, those
// in brackets one at a time:
//
//	session.mu → session.exchange → (wanted.mu, outbox.mu, reportWriter.mu)
//	→ senders.mu → Gateway.mu → session.seen
//
// The cache calls the watcher, which only sets flags and topics: it waits for no session.
//
// # Invariants
//
//   - A lease is renewed only by an accepted report or heartbeat (DET-2).
//   - alive/<id> is written in a transaction that compares the instance's record (unchanged, before
//     deleting) and the alive key as read, whose epoch must not be newer (DET-18). So a replica
//     that lost an agent can never overwrite the new session, and an agent's return races with the
//     leader's decision on revisions.
//   - A key deleted under an open stream is put back on a new lease, if the last report was
//     accepted less than lease_ttl ago by this replica's monotonic clock (DET-17).
//   - An agent receives its record's wanted state after its welcome and on every change, and never
//     an older record's: the local copy of the shard may be behind what another replica has sent.
//   - With an [Authority] a stream belongs to the instance that its certificate names, and ends
//     with the newest certificate that is known for it (SEC-1). Of all clients that use a join
//     token at the same time, on whatever replica, exactly one gets a certificate (SEC-2).
//   - Refusals reveal nothing to the client. The journal has the reason, in bounded space (SEC-5).
//   - No agent can delay another: each stream waits on its own goroutine, with deadlines.
//
// # What it does not do
//
// It judges no instance, and does not talk to other replicas: they share only etcd.
package gateway
