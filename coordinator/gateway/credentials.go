package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/coordinator/guard"
	"github.com/leasehold/leasehold/store"
)

// Authority certifies agents. It is safe for concurrent use, and its answers may change at any
// time.
type Authority interface {
	// Issue certifies the key of a request for an identity; the certificate may end before the
	// lifetime does, if its issuer ends. It fails if the request is not valid.
	Issue(request []byte, to identity.Identity, lifetime time.Duration) (chain [][]byte, ends time.Time, err error)
	// Seal seals the present facts of an instance (SAFE-17).
	Seal(claim store.Claim) ([]byte, error)
	// Trust returns the authorities that agents and coordinators trust, with the issuer.
	Trust() identity.Trust
	// Changed is closed when Trust changes next.
	Changed() <-chan struct{}
	// Certificate returns this coordinator's own certificate, for a handshake that begins now.
	Certificate(own identity.Identity) (*tls.Certificate, error)
}

// Peer is the other end of a connection.
type Peer struct {
	credentials.TLSInfo
	// Chain is the presented chain, the peer's own certificate first; empty for an agent that has not
	// joined.
	Chain    []*x509.Certificate
	Identity identity.Identity // of Chain[0]
}

// Credentials secure the server's side of agents' streams; nil without an authority. Certificate
// and trust are read at each handshake, so that changes take effect at once. Handshakes that fail
// are recorded (SEC-1).
func (g *Gateway) Credentials() credentials.TransportCredentials {
	if g.deps.Authority == nil {
		return nil
	}
	return &secured{
		authority: g.deps.Authority, refusals: g.refusals,
		own: identity.Identity{Shard: g.cfg.ShardID, Role: identity.Coordinator, Name: g.cfg.Replica},
	}
}

type secured struct {
	authority Authority
	own       identity.Identity
	refusals  *guard.Refusals

	mu sync.Mutex
	// for handshakes until the certificate or the trust changes: connections share it to save
	// memory
	ready prepared
}

// prepared is what all handshakes with one certificate under one trust share.
type prepared struct {
	own     *tls.Certificate
	changed <-chan struct{} // closed when trust has changed
	with    credentials.TransportCredentials
}

// noting is a connection that records the content of the TLS hello.
type noting struct {
	net.Conn
	came, old bool
}

// prepare returns the configuration of a handshake that begins now.
func (s *secured) prepare() (credentials.TransportCredentials, error) {
	own, err := s.authority.Certificate(s.own)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready.own == own {
		select {
		case <-s.ready.changed:
		default:
			return s.ready.with, nil
		}
	}
	changed := s.authority.Changed() // before Trust, so that nothing is missed
	cfg := identity.ServerConfig(own, s.authority.Trust())
	cfg.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		if c, ok := h.Conn.(*noting); ok {
			c.came, c.old = true, !slices.Contains(h.SupportedVersions, tls.VersionTLS13)
		}
		return nil, nil //nolint:nilnil // the configuration stays as it is
	}
	s.ready = prepared{own: own, changed: changed, with: credentials.NewTLS(cfg)}
	return s.ready.with, nil
}

// peerOf returns the peer of a stream; nil if the stream is not secured.
func peerOf(ctx context.Context) (who *Peer, address string) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil, ""
	}
	who, _ = p.AuthInfo.(*Peer)
	return who, p.Addr.String()
}

var errNoClient = errors.New("gateway: these credentials are a server's")

func (s *secured) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errNoClient
}

func (s *secured) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	with, err := s.prepare()
	if err != nil {
		s.refuse(raw, "this coordinator has no certificate to show", "", err)
		return nil, nil, err
	}
	hello := &noting{Conn: raw}
	conn, info, err := with.ServerHandshake(hello)
	if err != nil {
		why, claimed := whyFailed(err, hello.came, hello.old)
		if why != "" {
			s.refuse(raw, why, claimed, err)
		}
		return nil, nil, err
	}
	secure, ok := info.(credentials.TLSInfo)
	if !ok {
		return nil, nil, errors.Join(errors.New("gateway: a handshake left no record of itself"), conn.Close())
	}
	who := &Peer{TLSInfo: secure, Chain: secure.State.PeerCertificates}
	if len(who.Chain) > 0 {
		if who.Identity, err = identity.Of(who.Chain[0]); err != nil {
			s.refuse(raw, "the certificate names no identity", "", err)
			return nil, nil, errors.Join(err, conn.Close())
		}
	}
	return conn, who, nil
}

func (s *secured) refuse(raw net.Conn, why, claimed string, err error) {
	s.refusals.Add(guard.Refusal{
		Rule: "SEC-1", What: "connection refused", Why: why,
		Address: raw.RemoteAddr().String(), Claimed: claimed, Detail: err.Error(),
	})
}

// whyFailed returns why a handshake failed, and the name in the certificate if one was presented;
// "" if nothing was requested.
func whyFailed(err error, helloCame, oldTLS bool) (why, claimed string) {
	var plain tls.RecordHeaderError
	var unverified *tls.CertificateVerificationError
	var remote *net.OpError
	switch {
	case errors.As(err, &plain):
		return "not TLS", ""
	case oldTLS:
		return "TLS older than 1.3", ""
	case errors.As(err, &unverified):
		if len(unverified.UnverifiedCertificates) == 0 {
			return "the certificate is not believed", ""
		}
		leaf := unverified.UnverifiedCertificates[0]
		if who, err := identity.Of(leaf); err == nil {
			claimed = who.Name
		}
		return whyNotBelieved(unverified.Err, leaf), claimed
	case errors.As(err, &remote) && remote.Op == "remote error":
		return "the caller does not believe this coordinator", ""
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "no handshake in time", ""
	case errors.Is(err, net.ErrClosed):
		return "", "" // closed by the connection guard, which has logged why
	case !helloCame && errors.Is(err, io.EOF):
		return "", "" // a probe of whether the port is open
	default:
		return "the handshake failed", ""
	}
}

func whyNotBelieved(err error, leaf *x509.Certificate) string {
	var foreign x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &foreign):
		return "the certificate is of an unknown authority"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		if time.Now().Before(leaf.NotBefore) {
			return "the certificate is not valid yet"
		}
		return "the certificate has expired"
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		return "the certificate is not an agent's"
	default:
		return "the certificate is not believed"
	}
}

func (s *secured) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone returns the credentials themselves, which never change.
func (s *secured) Clone() credentials.TransportCredentials { return s }

// OverrideServerName does nothing: only clients use it.
func (s *secured) OverrideServerName(string) error { return errNoClient }
