// Package network is the network between the parties of a cluster under test, in the test's own
// process: every connection of theirs goes over a way of it, and rules say what becomes of the
// bytes.
//
//	network.go  ways, and rules that are imposed and lifted
//	rule.go     what a rule says, and what several say together
//	source.go   who connects, told by the address it connects from
//	link.go     one connection: how it comes about and ends
//	lane.go     one direction of it: bytes in order, held, late or slow
//
// # Invariants
//
//   - Bytes arrive in the order in which they were sent, each once, whatever was imposed and lifted meanwhile.
//   - That a party has hung up is news like its bytes: it arrives behind them, and not before silence ends.
//   - What is held does not grow: the switch stops reading, and the sender's writes block as soon as the kernel's buffers are full.
//   - Close ends every connection and waits for every goroutine.
//
// # What it does not do
//
// It knows bytes, no packets: what is lost arrives when TCP would have sent it again. The kernel of
// a party that speaks into silence hears its bytes acknowledged, so TCP's own time-outs do not run;
// and what was handed to the receiver's kernel before a rule came is with the receiver.
package network
