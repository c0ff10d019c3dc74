// Package guard stands between the network and the agents' server: it decides which connections may stay, so that a stranger at the port, or one
// agent that connects without end, takes nothing from the others (SEC-5).
//
// A connection is unfinished until its TLS handshake is done. Then it is named, if it showed a certificate, or nameless: all that
// one can do without a certificate is to join, which takes a moment.
//
// # The bounds
//
// [Bounds] has them; what an honest agent or a place with many of them needs, and what there is:
//
//	what                                     honest                     bound
//	an unfinished handshake                  below 1 s                  5 s
//	unfinished ones of an address            1,000 agents, two each     2,048
//	unfinished ones in all                   as above                   a quarter of the descriptors, at most 8,192
//	life of a nameless one                   one exchange, below 5 s    30 s
//	nameless ones of an address              1,000 machines that join   2,048
//	connections of one name                  3 at most                  8
//	a write that the caller does not read    at once                    10 s
//
// Of an IPv6 address the network of 64 bits counts: whoever has one of its addresses has them all.
//
// # Invariants
//
//   - Over a bound, the oldest one goes that has had a second, or a second since it was first answered; if all are younger, the new one. So whoever
//     leaves connections open loses them, and not those who come after.
//   - A handshake that has had a turn goes before those that have not, and one that has waited for its first for half its time is given up: when more come
//     than there is time for, those who are answered get through, and the others come again.
//   - A handshake that computes has a turn, and there are fewer turns than processors: however many connect at once, agents that are
//     there already are answered. Whoever is waited for keeps no turn. Turns go round the addresses that wait: a newcomer waits for one
//     stranger of each other address, not for all of them.
//   - Accept fails when the listener is closed, and never else: with no descriptor left it waits.
//
// # What it does not do
//
// It checks no certificate (agent/identity) and writes no journal: it tells.
package guard
