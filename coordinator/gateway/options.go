package gateway

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/leasehold/leasehold/agent/protocol"
)

// What one connection can use of a replica.
const (
	maxStreams = 4        // an agent has one, and briefly the next beside it
	maxHeaders = 16 << 10 // bytes; an agent's have a few hundred
	window     = 64 << 10 // bytes that have arrived and were not read
	// for the handshake and the hello; the guard has a shorter bound of its own and names the
	// reason
	helloTime = 6 * time.Second
	buffer    = 4 << 10 // a report fits
)

// SecuredOptions are for a server whose connections each belong to one agent and are secured: TLS
// has its own read buffer, and an agent that sends its headers once needs no header table. Both
// would take memory for each connection.
func SecuredOptions() []grpc.ServerOption {
	return append(ServerOptions(), grpc.ReadBufferSize(0), grpc.HeaderTableSize(0))
}

// ServerOptions are the options that an agents' server must have: they detect silence (DET-3), and
// limit what one agent can use (SEC-5).
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: protocol.PingAfter, Timeout: protocol.PongTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime:             protocol.PingAfter / 2,
			PermitWithoutStream: true,
		}),
		grpc.MaxRecvMsgSize(protocol.MaxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(window),
		grpc.ReadBufferSize(buffer),
		grpc.WriteBufferSize(buffer),
		grpc.ConnectionTimeout(helloTime),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.InTapHandle(endable),
	}
}
