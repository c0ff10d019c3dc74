package coordinator

import (
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/gateway"
	"github.com/leasehold/leasehold/coordinator/guard"
)

// agentsServer is the server of agents' streams, and the listener that it is to serve. Where streams are secured a door is before it (SEC-5).
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
		d, err := guard.New(guard.DefaultBounds(descriptors), guard.Deps{Logger: r.log, Refused: gw.Refusals().AtDoor})
		if err != nil {
			return nil, nil, err
		}
		listener = d.Listener(listener)
		options = append(gateway.SecuredOptions(), grpc.Creds(d.Credentials(secured, agentsName)))
	}
	server := grpc.NewServer(options...)
	protocol.RegisterGatewayServer(server, gw)
	return server, listener, nil
}

// agentsName is whom a caller has proved to be, "" if he has shown no certificate.
func agentsName(info credentials.AuthInfo) string {
	if who, ok := info.(*gateway.Peer); ok {
		return who.Identity.Name
	}
	return ""
}
