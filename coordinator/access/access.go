// Package access decides who may read what a replica serves besides agents' streams: health, metrics
// and discovery. All of its servers share the same files.
//
//	access.go  what a server needs before it may listen; which clients it answers
//	files.go   the token; keys and certificates, reloaded when their files change
//
// # Invariants
//
//   - Beyond loopback there is TLS, and every client shows a token or a certificate.
//   - A certificate of the agents' authority opens nothing.
package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/agent/identity"
)

// Config names the files. All of them may be empty.
type Config struct {
	CertFile     string // the server's certificate, with the chain; empty: no TLS, which loopback alone allows
	KeyFile      string
	TokenFile    string // holds the token that clients show; empty: none is known
	ClientCAFile string // authorities of client certificates accepted instead; empty: none

	// Proxies are the networks, or single addresses, of reverse proxies that have asked who a client is. They
	// say so in the header ProxyHeader. None: there are no proxies.
	Proxies     []string
	ProxyHeader string
}

// UnsafeError is why a server is not opened as configured, and what to do about it.
type UnsafeError struct{ What, Next string }

func (e *UnsafeError) Error() string { return e.What }

// Access is what the files say now.
type Access struct {
	cfg      Config
	proxies  []netip.Prefix
	token    *followed[string, string]
	identity *followed[identityFiles, *tls.Config]
}

// Open reads the files, for a server of an application protocol such as h2.
func Open(cfg Config, protocol string, log *slog.Logger) (*Access, error) {
	switch {
	case (cfg.CertFile == "") != (cfg.KeyFile == ""):
		return nil, &UnsafeError{"--http-cert and --http-key: one without the other", "give both files"}
	case cfg.ClientCAFile != "" && cfg.CertFile == "":
		return nil, &UnsafeError{
			"--http-client-ca: without TLS nobody shows a certificate",
			"give --http-cert and --http-key too",
		}
	}
	a := &Access{cfg: cfg}
	var err error
	if a.proxies, err = readProxies(cfg.Proxies); err != nil {
		return nil, err
	}
	if cfg.TokenFile != "" {
		a.token, err = follow(log,
			func() (string, error) { return readFile("--http-token-file", cfg.TokenFile, true) },
			func(text string) (string, error) { return parseToken(cfg.TokenFile, text) })
		if err != nil {
			return nil, err
		}
	}
	if cfg.CertFile != "" {
		a.identity, err = follow(log, func() (identityFiles, error) { return readIdentity(cfg) },
			func(f identityFiles) (*tls.Config, error) { return parseIdentity(cfg, protocol, f) })
		if err != nil {
			return nil, err
		}
	}
	return a, nil
}

// TLS is the configuration of a server's handshakes; nil: there is no TLS.
func (a *Access) TLS() *tls.Config {
	if a.identity == nil {
		return nil
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return a.identity.Now(), nil },
	}
}

// Certificate is the server's own; nil: there is no TLS.
func (a *Access) Certificate() *x509.Certificate {
	if a.identity == nil {
		return nil
	}
	return a.identity.Now().Certificates[0].Leaf
}

// Safe returns an UnsafeError with what is missing to listen where a flag says. Local means that this machine
// alone can reach it, and instead is the flag's value for which nothing is missing.
func (a *Access) Safe(flag, listen string, local bool, instead string) error {
	switch {
	case local:
		return nil
	case a.identity == nil:
		return &UnsafeError{
			fmt.Sprintf("%s: %s: others than this machine can reach it, and there is no TLS", flag, listen),
			fmt.Sprintf("give --http-cert and --http-key, and --http-token-file or --http-client-ca; or %[1]s %[2]s, or %[1]s off",
				flag, instead),
		}
	case a.token == nil && a.cfg.ClientCAFile == "" && !a.Proxied():
		return &UnsafeError{
			fmt.Sprintf("%s: %s: others than this machine can reach it, and nobody is asked who he is", flag, listen),
			"give --http-token-file (head -c 32 /dev/urandom | base64 > FILE && chmod 600 FILE), or --http-client-ca",
		}
	}
	return nil
}

// Admits reports whether a client has presented the required credentials: an Authorization header, or a
// certificate in the handshake. On loopback nothing may be required.
func (a *Access) Admits(local bool, authorization string, handshake *tls.ConnectionState) bool {
	if a.token == nil && a.cfg.ClientCAFile == "" {
		return local
	}
	return a.token != nil && knowsToken(authorization, a.token.Now()) ||
		a.cfg.ClientCAFile != "" && hasCertificate(handshake)
}

// Proxied reports whether clients come through reverse proxies.
func (a *Access) Proxied() bool { return len(a.proxies) > 0 }

// Vouched reports whether a reverse proxy at one of the named addresses says who the client is. The same
// header from any other address says nothing. A header that is there twice was not made by one proxy.
func (a *Access) Vouched(remote string, header http.Header) bool {
	if !a.Proxied() {
		return false
	}
	from, err := netip.ParseAddrPort(remote)
	values := header.Values(a.cfg.ProxyHeader)
	if err != nil || len(values) != 1 || strings.TrimSpace(values[0]) == "" {
		return false
	}
	return slices.ContainsFunc(a.proxies, func(p netip.Prefix) bool { return p.Contains(from.Addr().Unmap()) })
}

// readProxies reads networks and addresses.
func readProxies(texts []string) ([]netip.Prefix, error) {
	var proxies []netip.Prefix
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			var one netip.Addr
			if one, err = netip.ParseAddr(text); err == nil {
				p = netip.PrefixFrom(one.Unmap(), one.Unmap().BitLen())
			}
		}
		if err != nil {
			return nil, &UnsafeError{
				fmt.Sprintf("--http-proxy: %s: must be an address or a network", text), "give 10.0.0.5 or 10.0.0.0/24, say",
			}
		}
		proxies = append(proxies, p)
	}
	return proxies, nil
}

// knowsToken compares digests, so that neither time nor length tells anything. A token in a URL
// is none: those end up in logs. Browsers ask people for a name and a password: the name does not matter.
func knowsToken(authorization, token string) bool {
	scheme, shown, _ := strings.Cut(authorization, " ")
	switch {
	case strings.EqualFold(scheme, "Bearer"):
	case strings.EqualFold(scheme, "Basic"):
		pair, err := base64.StdEncoding.DecodeString(strings.TrimSpace(shown))
		if err != nil {
			return false
		}
		_, shown, _ = strings.Cut(string(pair), ":")
	default:
		return false
	}
	a, b := sha256.Sum256([]byte(shown)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// hasCertificate reports whether the handshake has verified a certificate. One that names an agent
// or a coordinator on an agents' stream is none for us, even where an operator has named the
// agents' authority by mistake.
func hasCertificate(handshake *tls.ConnectionState) bool {
	if handshake == nil || len(handshake.VerifiedChains) == 0 {
		return false
	}
	for _, uri := range handshake.PeerCertificates[0].URIs {
		if strings.EqualFold(uri.Scheme, identity.Scheme) {
			return false
		}
	}
	return true
}
