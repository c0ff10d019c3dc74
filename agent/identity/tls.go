package identity

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"time"
)

// ServerConfig is how a coordinator takes streams. A caller may come without a certificate, to
// join; one that shows a certificate is believed or sent away in the handshake. The certificate is
// the coordinator's own.
//
// It is rebuilt for each handshake, so that a change takes effect at once. Sessions are
// not resumed: a ticket would outlive the trust that it was given in.
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

// ClientConfig is how an agent reaches any coordinator of its shard; own is nil for one that has
// yet to join.
//
// A coordinator's certificate must be valid at one of these times, or now if there are none. A
// machine's clock may be wrong by years, and its agent must find back all the same (SAFE-13): so it
// also uses the time last received from a coordinator. Everything else about the certificate
// is as strict as ever.
func ClientConfig(shard string, own *tls.Certificate, trust Trust, times ...time.Time) *tls.Config {
	if len(times) == 0 {
		times = []time.Time{time.Now()}
	}
	c := &tls.Config{
		MinVersion: tls.VersionTLS13,
		ServerName: Host(shard, Coordinator),
		NextProtos: []string{"h2"},
		// The standard library checks at one time only. VerifyConnection does all that is skipped
		// here, in every handshake.
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
		// Whatever authorities the server names: it may not know ours yet, and an agent that shows
		// nothing is told nothing.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own, nil }
	}
	return c
}

// withoutRoot leaves the authority out of what is shown, if it has certified itself: who does not
// know it already believes it no more for seeing it, and a coordinator keeps what it is shown as
// long as the connection lasts.
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

// verifyServer is what the standard library does for a client, at a time of our choice.
func verifyServer(s tls.ConnectionState, host string, trust Trust, at time.Time) error {
	if _, err := trust.Verify(s.PeerCertificates, x509.ExtKeyUsageServerAuth, host, at); err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
	}
	return nil
}
