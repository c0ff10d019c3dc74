// Package crowd simulates many agents in one process. A coordinator receives from them what it would
// receive from as many machines.
//
//	crowd.go     the crowd: its agents, and what can be done to them
//	loop.go      runs agents when they are due
//	agent.go     one agent: agent/session decides, and this package carries out its commands
//	stream.go    one stream of an agent
//	line.go      connections: one for each agent, or a few shared ones
//	certificates.go  the agents' certificates
//	work.go      certificates of their workloads
//	report.go    what agents report about their machines
//	stats.go     what is counted
//	wire         cheap gRPC streams
//
// An agent has neither goroutine nor timer: a few loops run the agents that are due, and the
// goroutine that reads a connection passes on what arrives. So an agent takes some 2 KiB, and a
// report some microseconds, while decisions, streams and reports are the real ones.
//
// # Connections
//
// With Config.Shared 0 each agent has a connection of its own over TLS, as real ones do, with a
// certificate that the bench's own authority issues; and a second one, kept warm, with Config.Warm.
// To coordinators on loopback addresses they come from many addresses of 127.0.0.0/12, so that
// there are ports enough. The process may need two descriptors for each agent.
//
// Otherwise all agents share that many connections to each coordinator, without TLS: a certificate names
// one instance. The coordinator must allow so many streams on one connection:
// coordinator.Config.StreamsPerConnection.
//
// # Invariants
//
//   - What happens to an agent happens with its loop's lock, and nothing waits for a network meanwhile.
//   - An agent that was silenced does nothing by itself until it returns. Its last acknowledgement
//     is in its [Silenced].
//   - Counts are of what was sent and received on streams. How late the crowd itself was is counted
//     too ([Stats.Late]): a bench whose crowd is late
//     has measured itself.
//
// # What it does not do
//
// Agents run no workload and no checks: they report that all checks pass. They do not join with
// tokens, keep nothing on disk, and do not renew certificates.
package crowd
