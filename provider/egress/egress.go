// Package egress is how coordinators reach the addresses that stand in their own configuration
// (SEC-7): an API that is named there, and nothing that it points to.
package egress

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// Client returns an HTTP client with bounds: see Dialer and Stay. CACert is a file with the
// certificate authority of the servers; empty: the system's.
func Client(caCert string, timeout time.Duration) (*http.Client, error) {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: Dialer().DialContext, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if caCert != "" {
		text, err := os.ReadFile(caCert)
		if err != nil {
			return nil, fmt.Errorf("cacert: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("cacert: %s holds no certificate in PEM", caCert)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	return &http.Client{Transport: transport, Timeout: timeout, CheckRedirect: Stay}, nil
}

// amazonMetadata is the address of EC2's metadata service in IPv6, which is not link-local.
var amazonMetadata = netip.MustParseAddr("fd00:ec2::254")

// Dialer refuses link-local addresses and EC2's metadata address in IPv6, whatever name leads to
// them: metadata services of clouds are there, which hand out the credentials of the coordinator's
// own machine.
func Dialer() *net.Dialer {
	return &net.Dialer{Timeout: 30 * time.Second, Control: control}
}

func control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if a := to.Addr().Unmap(); a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() {
		return fmt.Errorf("%s is a link-local address: configure another one", a)
	} else if a.WithZone("") == amazonMetadata {
		return fmt.Errorf("%s is the address of EC2's metadata: configure another one", a)
	}
	return nil
}

// Stay is a CheckRedirect that follows none: the answer that redirects is the answer. What a
// request carries, as tokens in headers of a cloud's own, is for its address alone.
func Stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// ClientCertificate has each new connection present the certificate that the files hold then, so
// that a renewed one is used without a restart. The files must hold one now.
func ClientCertificate(cert, key string) (func(*tls.CertificateRequestInfo) (*tls.Certificate, error), error) {
	read := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("read cert and key: %w", err)
		}
		return &pair, nil
	}
	_, err := read(nil)
	return read, err
}
