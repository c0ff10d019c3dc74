package coordinator

import (
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/gateway"
	"github.com/leasehold/leasehold/coordinator/guard"
)

// agentsServer returns the server of agents' streams and the listener for it. Secured streams are
// behind a connection guard (SEC-5).
func (r *Replica) agentsServer(gw *gateway.Gateway, listener net.Listener) (*grpc.Server, net.Listener, error) {
	options := gateway.ServerOptions()
	if n := r.cfg.StreamsPerConnection; n > 0 {
		options = append(options, grpc.MaxConcurrentStreams(n))
	}
	if secured := gw.Credentials(); secured != nil {
		descriptors, err := guard.Descriptors()
		if err != nil {
			return nil, nil, err
		}
		connections, err := guard.NewConnections(guard.DefaultBounds(descriptors),
			guard.Deps{Logger: r.log, Refused: gw.Refusals().Add})
		if err != nil {
			return nil, nil, err
		}
		listener = connections.Listener(listener)
		options = append(gateway.SecuredOptions(), grpc.Creds(connections.Credentials(secured, agentsName)))
	}
	server := grpc.NewServer(options...)
	protocol.RegisterGatewayServer(server, gw)
	if r.deps.Register != nil {
		r.deps.Register(server)
	}
	return server, listener, nil
}

// agentsName returns the name in a client's certificate, "" if it has none.
func agentsName(info credentials.AuthInfo) string {
	if who, ok := info.(*gateway.Peer); ok {
		return who.Identity.Name
	}
	return ""
}
