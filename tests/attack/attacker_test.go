package attack

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/protocol"
)

// patience is how long an attacker waits for an answer.
const patience = 20 * time.Second

// attacker is an attacker with an address of its own.
type attacker struct {
	s        *siege
	from, to string
}

// attacker returns a new attacker. Attackers alternate between the replicas: each replica records
// only so many refusals at once, and the rest as a sum each minute.
func (s *siege) attacker() *attacker {
	s.attackers++
	return &attacker{
		s: s, from: fmt.Sprintf("127.0.%d.%d", 1+s.attackers/250, 1+s.attackers%250),
		to: s.Addresses[string(rune('a'+s.attackers%2))],
	}
}

func (e *attacker) dial(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(e.from)}}).DialContext(ctx, "tcp", address)
}

// connect opens a connection with the given credentials.
func (e *attacker) connect(t *testing.T, c credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := e.line(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// with returns TLS credentials with a certificate, or none, that accept any server.
func (e *attacker) with(own *tls.Certificate) credentials.TransportCredentials {
	c := &tls.Config{
		MinVersion:         tls.VersionTLS13,
		NextProtos:         []string{"h2"},
		InsecureSkipVerify: true, //nolint:gosec // an attacker believes everybody
	}
	if own != nil {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own, nil }
	}
	return credentials.NewTLS(c)
}

// errRefused is an answer of the gateway itself.
var errRefused = errors.New("refused")

// hello sends a hello, and returns the result: nil only for a welcome.
func (e *attacker) hello(t *testing.T, conn *grpc.ClientConn, h *protocol.Hello) (protocol.Gateway_SessionClient,
	error,
) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	late := time.AfterFunc(patience, cancel)
	defer late.Stop()
	stream, err := protocol.NewGatewayClient(conn).Session(ctx)
	if err != nil {
		return nil, err
	}
	if err := stream.Send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Hello{Hello: h}}); err != nil {
		_, err = stream.Recv() // the message has the reason
		return nil, err
	}
	m, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	if r := m.GetRefused(); r != nil {
		return nil, fmt.Errorf("%w: %s: %s", errRefused, r.GetReason(), r.GetMessage())
	}
	if m.GetWelcome() == nil {
		return nil, fmt.Errorf("neither welcomed nor refused: %v", m)
	}
	return stream, nil
}

// helloOf returns the hello of an instance.
func (s *siege) helloOf(instance string) *protocol.Hello {
	return &protocol.Hello{Protocol: 1, Shard: s.shard, Instance: instance, BootId: "attacker", Epoch: 1 << 40}
}

// forger issues certificates: with a stolen authority, or one of its own.
type forger struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newForger creates an authority of its own.
func newForger(t *testing.T) forger {
	t.Helper()
	key, err := identity.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	f := forger{key: key}
	self := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "leasehold agents"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, self, self, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if f.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return f
}

// paper is the content of a certificate.
type paper struct {
	uri        string
	commonName string
	from, to   time.Duration // relative to now
	use        x509.ExtKeyUsage
}

// agent returns the content of an instance's certificate.
func (s *siege) agent(instance string) paper {
	return paper{
		uri:  identity.Identity{Shard: s.shard, Role: identity.Agent, Name: instance}.String(),
		from: -time.Hour, to: time.Hour, use: x509.ExtKeyUsageClientAuth,
	}
}

// forge issues a certificate.
func (f forger) forge(t *testing.T, p paper) *tls.Certificate {
	t.Helper()
	key, err := identity.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: p.commonName}, NotBefore: time.Now().Add(p.from),
		NotAfter: time.Now().Add(p.to),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{p.use}, BasicConstraintsValid: true,
	}
	if p.uri != "" {
		u, err := url.Parse(p.uri)
		if err != nil {
			t.Fatal(err)
		}
		c.URIs = []*url.URL{u}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, f.cert, &key.PublicKey, f.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der, f.cert.Raw}, PrivateKey: key}
}
