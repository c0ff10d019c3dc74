package checks

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/workload"
)

// probe is one run of a check, which ends at the latest with the context. Runs never overlap.
type probe func(ctx context.Context) Result

// prepare makes the probe of a check whose texts are expanded. It returns the errors that can be
// detected before a run.
func prepare(spec *protocol.CheckSpec, place workload.Config, vars map[string]string) (probe, error) {
	switch kind := spec.GetKind().(type) {
	case *protocol.CheckSpec_Http:
		return newHTTPProbe(kind.Http)
	case *protocol.CheckSpec_Tcp:
		return newTCPProbe(kind.Tcp)
	case *protocol.CheckSpec_Grpc:
		return newGRPCProbe(kind.Grpc)
	case *protocol.CheckSpec_Exec:
		return newExecProbe(kind.Exec, place, vars), nil
	case *protocol.CheckSpec_Process:
		return newProcessProbe(kind.Process), nil
	default:
		return nil, errors.New("this agent does not know the kind of this check: upgrade the agent")
	}
}

// Kind returns the name of a check's kind.
func Kind(spec *protocol.CheckSpec) string {
	switch spec.GetKind().(type) {
	case *protocol.CheckSpec_Http:
		return "http"
	case *protocol.CheckSpec_Tcp:
		return "tcp"
	case *protocol.CheckSpec_Grpc:
		return "grpc"
	case *protocol.CheckSpec_Exec:
		return "exec"
	case *protocol.CheckSpec_Process:
		return "process"
	default:
		return ""
	}
}

// address returns the server's address.
func address(host, port string) (string, error) {
	if host == "" {
		host = "127.0.0.1"
	}
	n, err := net.LookupPort("tcp", port)
	if err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("port %q: must be 1 to 65535", port)
	}
	return net.JoinHostPort(host, fmt.Sprint(n)), nil
}

// newTCPProbe returns a probe that passes if a connection is accepted. It closes the connection
// with a reset, so that none lingers.
func newTCPProbe(c *protocol.TCPCheck) (probe, error) {
	to, err := address(c.GetHost(), c.GetPort())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) Result {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
		if err != nil {
			return failure(ctx, err)
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // otherwise it closes in order and stays in the kernel for a minute
		}
		_ = conn.Close() // it was accepted, which is all that the check asks
		return ""
	}, nil
}

// failure describes an error in words that do not differ between runs.
func failure(ctx context.Context, err error) Result {
	var (
		call    *net.OpError
		unknown *net.DNSError
		number  syscall.Errno
		timeout interface{ Timeout() bool }
		cert    *tls.CertificateVerificationError
		file    *fs.PathError
	)
	switch {
	case errors.Is(err, context.DeadlineExceeded), ctx.Err() != nil:
		return timedOut
	case errors.As(err, &file):
		return Result(err.Error())
	case errors.As(err, &cert):
		return Result(cert.Err.Error())
	case errors.As(err, &unknown):
		return Result(fmt.Sprintf("%s: no such host", unknown.Name))
	case errors.As(err, &number):
		return Result(number.Error())
	case errors.As(err, &timeout) && timeout.Timeout():
		return timedOut
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection"
	case errors.As(err, &call):
		return Result(call.Err.Error())
	default:
		return Result(err.Error())
	}
}

// timedOut is the result of a run that did not end in time.
const timedOut Result = "timed out"

// tlsConfig reads the certificates each time, because they may be replaced on the machine.
func tlsConfig(o *protocol.TLSOptions, host string) (*tls.Config, error) {
	cfg := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: o.GetServerName(),
		InsecureSkipVerify: o.GetSkipVerify(), //nolint:gosec // the operator's choice
	}
	if cfg.ServerName == "" {
		cfg.ServerName = host
	}
	if file := o.GetCaFile(); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca_file: no certificate in %s", file)
		}
	}
	return cfg, nil
}
