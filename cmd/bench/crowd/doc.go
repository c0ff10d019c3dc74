// Package crowd is many agents in one process: what a coordinator hears of them is what it would
// hear of as many machines.
//
//	crowd.go     the crowd: who is in it, and what happens to whom
//	loop.go      when it is whose turn
//	agent.go     one agent: what it decides is agent/session's, and what that orders is carried out here
//	stream.go    one stream of an agent
//	line.go      connections: one for each agent, or few for all
//	certificates.go  certificates
//	report.go    what agents say of their machines
//	stats.go     what is counted
//	wire         gRPC streams that cost little
//
// An agent has neither goroutine nor timer: a few loops call those whose time has come, and the
// goroutine that reads a connection hands on what came. So an agent takes some 2 KiB, and a report
// some microseconds, while deciding, streams and reports are the real ones.
//
// # Connections
//
// With Config.Shared 0 each agent has a connection of its own over TLS, as real ones do, with a
// certificate that the bench's own authority issues; and a second one, kept warm, with Config.Warm.
// To coordinators on loopback addresses they come from many addresses of 127.0.0.0/12, so that
// there are ports enough. The process may need two descriptors for each agent.
//
// Else all agents share that many connections to each coordinator, without TLS: a certificate names
// one instance. The coordinator must allow so many streams on one connection:
// coordinator.Config.StreamsPerConnection.
//
// # Invariants
//
//   - What happens to an agent happens with its loop's lock, and nothing waits for a network meanwhile.
//   - An agent that was silenced does nothing by itself until it returns. What it was told last is in its [Silenced].
//   - What is counted is what was said and heard on streams. How late the crowd itself was is counted too ([Stats.Late]): a bench whose crowd is late
//     has measured itself.
//
// # What it does not do
//
// Agents run no workload and no checks: they report that all they are told to check is well. They
// do not join with tokens, keep nothing on a disk, and do not renew certificates. Connections do
// not wait before they are made again, beyond what the agents do.
package crowd
