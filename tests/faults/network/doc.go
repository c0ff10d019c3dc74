// Package network is the network between the parties of a cluster under test, in the test's own
// process: every connection of theirs goes through it, and rules say what happens to the
// bytes.
//
//	network.go  ways, and rules that are imposed and lifted
//	rule.go     rules, and their combination
//	source.go   parties, identified by the address that they connect from
//	link.go     one connection, from beginning to end
//	lane.go     one direction of it: bytes in order, held, late or slow
//
// # Invariants
//
//   - Bytes arrive in the order in which they were sent, each once, whatever rules were imposed and
//     lifted meanwhile.
//   - The end of a party's data arrives like its data: in order, and not before a silence ends.
//   - What is held does not grow: the switch stops reading, and the sender's writes block as soon
//     as the kernel's buffers are full.
//   - Close ends every connection and waits for every goroutine.
//
// # What it does not do
//
// It handles bytes, not packets: lost data arrives when TCP would have retransmitted it. The kernel
// of a party that sends into silence gets acknowledgements, so TCP's own time-outs do not run; and
// what was passed to the receiver's kernel before a rule was imposed arrives.
package network
