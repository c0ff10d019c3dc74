package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/leasehold/leasehold/agent/identity"
)

// Credentials returns transport credentials that use what is in force when a connection is made.
// Bare ones present no certificate, for joining. A connection of an older generation presented
// another certificate and should be replaced.
func (h *Holder) Credentials(bare bool) (c credentials.TransportCredentials, generation uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return secured{p: h, bare: bare}, h.generation
}

// TLS returns the configuration for reaching a coordinator's other services. It presents no
// certificate.
func (h *Holder) TLS() *tls.Config {
	h.mu.Lock()
	defer h.mu.Unlock()
	return identity.ClientConfig(h.identity.Shard, nil, h.force.trust, h.clock.times(time.Now())...)
}

// secured implements transport credentials that are rebuilt for each handshake.
type secured struct {
	p    *Holder
	bare bool
}

func (s secured) ClientHandshake(ctx context.Context, _ string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	s.p.mu.Lock()
	inForce, at := s.p.force, s.p.clock.times(time.Now())
	s.p.mu.Unlock()
	own := inForce.pair()
	if s.bare {
		own = nil
	}
	config := identity.ClientConfig(s.p.identity.Shard, own, inForce.trust, at...)
	// Otherwise gRPC asks for the address.
	conn, info, err := credentials.NewTLS(config).ClientHandshake(ctx, config.ServerName, raw)
	if err != nil {
		return nil, nil, plain(err, time.Now())
	}
	return conn, info, nil
}

func (secured) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("an agent serves nothing")
}

func (secured) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

func (s secured) Clone() credentials.TransportCredentials { return s }

func (secured) OverrideServerName(string) error {
	return errors.New("the server name of an agent's connection cannot be overridden")
}

// plain explains an error about a coordinator's certificate so that an operator can act on it.
func plain(err error, now time.Time) error {
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("the coordinator's certificate is not valid now: %w", untimely(invalid.Cert, now))
	case errors.As(err, &unknown):
		return fmt.Errorf("the coordinator's certificate is not signed by an authority that this machine trusts: "+
			"it is not a coordinator of this shard, or the authorities were exchanged while the machine was away (then replace "+
			"the instance): %w", err)
	case errors.As(err, &name):
		return fmt.Errorf("the certificate belongs to another shard or service, not to a coordinator of this shard: %w",
			err)
	}
	return err
}

// untimely returns an error that says when a certificate is valid.
func untimely(c *x509.Certificate, now time.Time) error {
	return fmt.Errorf("it is valid from %s to %s, and the clock of this machine says %s: if that is wrong, set the clock",
		c.NotBefore.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
}
