package checks

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/agent/protocol"
)

// newGRPCProbe returns a probe that passes while grpc.health.v1 reports SERVING. Each run opens its
// own connection.
func newGRPCProbe(c *protocol.GRPCCheck) (probe, error) {
	to, err := address(c.GetHost(), c.GetPort())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) Result {
		transport := insecure.NewCredentials()
		if c.GetEncrypted() {
			host, _, _ := net.SplitHostPort(to) // address has joined them
			cfg, err := tlsConfig(c.GetTls(), host)
			if err != nil {
				return Result(err.Error())
			}
			transport = credentials.NewTLS(cfg)
		}
		var dialed error // gRPC's own text differs from run to run
		conn, err := grpc.NewClient("passthrough:///"+to, grpc.WithTransportCredentials(transport),
			grpc.WithUserAgent("leasehold-agent"),
			grpc.WithDisableServiceConfig(), grpc.WithReadBufferSize(4<<10), grpc.WithWriteBufferSize(4<<10),
			grpc.WithContextDialer(func(ctx context.Context, addr string) (conn net.Conn, err error) {
				conn, dialed = (&net.Dialer{}).DialContext(ctx, "tcp", addr)
				return conn, dialed
			}))
		if err != nil {
			return Result(err.Error())
		}
		answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx,
			&grpc_health_v1.HealthCheckRequest{Service: c.GetService()}, grpc.MaxCallRecvMsgSize(maxBody))
		_ = conn.Close() // waits for the dialer
		switch code := status.Code(err); {
		case err == nil && answer.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING:
			return ""
		case err == nil:
			return Result(answer.GetStatus().String())
		case code == codes.DeadlineExceeded:
			return timedOut
		case code == codes.NotFound:
			return Result(fmt.Sprintf("the server has no service %q", c.GetService()))
		case code == codes.Unimplemented:
			return "the server does not speak grpc.health.v1"
		case dialed != nil:
			return failure(ctx, dialed)
		case code == codes.Unavailable:
			return "the server closed the connection, or does not speak " +
				Result(map[bool]string{true: "TLS as this agent does", false: "gRPC"}[c.GetEncrypted()])
		default:
			return Result(code.String() + ": " + status.Convert(err).Message())
		}
	}, nil
}
