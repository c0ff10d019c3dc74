package identity

import (
	"crypto/tls"
)

// ServerConfig is how a coordinator takes streams. A caller may come without a certificate, to join; one that shows a certificate is
// believed or sent away in the handshake. The certificate is the coordinator's own.
//
// It is made anew for each handshake, so that what changed meanwhile counts at once. Sessions are not resumed: a ticket would outlive the trust that
// it was given in.
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

// ClientConfig is how an agent reaches any coordinator of its shard; own is nil for one that has yet to join.
func ClientConfig(shard string, own *tls.Certificate, trust Trust) *tls.Config {
	c := &tls.Config{
		MinVersion: tls.VersionTLS13,
		ServerName: Host(shard, Coordinator),
		RootCAs:    trust.Pool(),
		NextProtos: []string{"h2"},
	}
	if own != nil {
		// Whatever authorities the server names: it may not know ours yet, and an agent that shows nothing is told nothing.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own, nil }
	}
	return c
}
