// Package protocol is the protocol between agents and coordinators: see protocol.proto.
package protocol

// Bounds of an agent's messages (SEC-5). An agent keeps within them. A gateway stores no more than
// this, and accepts up to [Leeway] times as much: a client that sends more is not one of our
// agents.
const (
	MostChecks  = 64 // a group may have half as many
	MostWindows = 3
	MostName    = 100
	MostText    = 1000
	MostOutput  = 64 << 10
	MostClaim   = 4 << 10 // bytes of the sealed claim
	MostFiles   = 32
	MostPath    = 1000
	MostRoots   = 16
	MostPiece   = 64 << 10 // bytes of a file in one message
	MostFile    = 256 << 10

	Leeway = 4

	MostMessage = 256 << 10 // bytes
	// fields of a message, including nested messages; a report with the most checks has fewer than
	// 1,000
	MostParts = 8192
)
