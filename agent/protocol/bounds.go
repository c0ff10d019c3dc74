// Package protocol is the protocol between agents and coordinators: see protocol.proto.
package protocol

// Bounds of an agent's messages (SEC-5). An agent keeps within them. A gateway stores no more than
// this, and accepts up to [Leeway] times as much: a client that sends more is not one of our
// agents.
const (
	MaxChecks  = 64 // a group may have half as many
	MaxWindows = 3
	MaxName    = 100
	MaxText    = 1000
	MaxOutput  = 64 << 10
	MaxClaim   = 4 << 10 // bytes of the sealed claim
	MaxFiles   = 32
	MaxPath    = 1000
	MaxRoots   = 16
	MaxPiece   = 64 << 10 // bytes of a file in one message
	MaxFile    = 256 << 10

	Leeway = 4

	MaxMessage = 256 << 10 // bytes
	// fields of a message, including nested messages; a report with the most checks has fewer than
	// 1,000
	MaxParts = 8192
)
