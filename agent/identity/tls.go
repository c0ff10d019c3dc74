package identity

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"time"
)

// ServerConfig returns the TLS configuration with which a coordinator accepts streams. A client
// without a certificate may connect, to join; a client with a certificate is verified in the
// handshake. The certificate is the coordinator's own.
//
// The configuration is rebuilt for each handshake, so that a change takes effect at once. Sessions
// are not resumed: a ticket would outlive the trust under which it was issued.
func ServerConfig(own *tls.Certificate, trust Trust) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{*own},
		ClientAuth:             tls.VerifyClientCertIfGiven,
		ClientCAs:              trust.Pool(),
		SessionTicketsDisabled: true,
		NextProtos:             []string{"h2"},
	}
}

// ClientConfig returns the TLS configuration with which an agent reaches any coordinator of its
// shard; own is nil for an agent that has not joined yet.
//
// A coordinator's certificate must be valid at one of these times, or now if there are none. A
// machine's clock may be wrong by years, and its agent must still be able to reconnect (SAFE-13):
// so the agent also uses the time last received from a coordinator. All other checks of the
// certificate are the usual ones.
func ClientConfig(shard string, own *tls.Certificate, trust Trust, times ...time.Time) *tls.Config {
	if len(times) == 0 {
		times = []time.Time{time.Now()}
	}
	c := &tls.Config{
		MinVersion: tls.VersionTLS13,
		ServerName: Host(shard, Coordinator),
		NextProtos: []string{"h2"},
		// The standard library checks at one time only. VerifyConnection performs the skipped
		// checks in every handshake.
		InsecureSkipVerify: true, //nolint:gosec // see above
		VerifyConnection: func(s tls.ConnectionState) error {
			var err error
			for _, at := range times {
				if err = verifyServer(s, Host(shard, Coordinator), trust, at); err == nil {
					return nil
				}
			}
			return err
		},
	}
	if own != nil {
		own = withoutRoot(own, trust)
		// The authorities that the server names are ignored: it may not know ours yet, and it must
		// learn nothing from an agent without a certificate.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own, nil }
	}
	return c
}

// withoutRoot leaves a self-signed authority out of the chain: sending it makes no peer trust it,
// and a coordinator keeps a client's chain in memory as long as the connection lasts.
func withoutRoot(own *tls.Certificate, trust Trust) *tls.Certificate {
	last := len(own.Certificate) - 1
	for _, c := range trust.Authorities {
		if last > 0 && bytes.Equal(c.Raw, own.Certificate[last]) && bytes.Equal(c.RawIssuer, c.RawSubject) {
			shown := *own
			shown.Certificate = own.Certificate[:last:last]
			return &shown
		}
	}
	return own
}

// verifyServer performs the standard library's checks of a server at a time of our choice.
func verifyServer(s tls.ConnectionState, host string, trust Trust, at time.Time) error {
	if _, err := trust.Verify(s.PeerCertificates, x509.ExtKeyUsageServerAuth, host, at); err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
	}
	return nil
}
