// Package guard limits what a client of the agents' server can use, and decides what happens to a
// client that exceeds the limits (SEC-5). The gateway speaks the agents' protocol and asks this
// package.
//
//	connections.go  which connections may stay: the connection guard
//	handshakes.go   which TLS handshake computes next
//	clients.go      client state: how often an instance says hello, and for how long it is refused
//	rate.go         rate state: how fast a stream may send
//	violation.go    what no agent does, and what counts as such in a message
//	admission.go    when a session may begin while thousands arrive
//	refusals.go     the record of what was refused, in bounded space
//
// # Connections
//
// A connection is pending until its TLS handshake is done. Then it is named, if it showed a
// certificate, or anonymous. An anonymous connection can only join, which takes a moment. [Bounds]
// limits each kind:
//
//	what                                     honest                     bound
//	a pending handshake                      below 1 s                  5 s
//	pending handshakes of a source           1,000 agents, two each     2,048
//	pending handshakes in all                as above                   1/4 of descriptors, ≤ 8,192
//	life of an anonymous connection          one exchange, below 5 s    30 s
//	anonymous connections of a source        1,000 machines that join   2,048
//	connections of one name                  3 at most                  8
//	a write that the client does not read    at once                    10 s
//
// A source is an IPv4 address or an IPv6 network of 64 bits, because a client with one address of
// such a network has them all.
//
// # Invariants
//
//   - At a bound, the oldest connection of that kind is closed if it is at least a second old, or a
//     second has passed since the first answer to it. If all are younger, the new connection is
//     closed. So a client that leaves connections open loses them, and later clients get in.
//   - Fewer handshakes compute at once than there are processors, so established agents are
//     answered during a flood. A handshake that waits for its client does not count. Sources take
//     turns, so a new client waits for one handshake of each other source.
//   - A handshake that has begun goes before new ones. One that has waited for half its time
//     without beginning is closed. So under overload those that begin also finish, and the others
//     retry.
//   - Accept fails only when the listener is closed. Without a free descriptor it waits.
//   - Neither counting nor recording a refusal waits for the journal.
//
// The package checks no certificates (agent/identity does) and writes no journal itself.
package guard
