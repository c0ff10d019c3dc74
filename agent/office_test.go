package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/agent/certificate"
	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/identity/identitytest"
	"github.com/leasehold/leasehold/agent/protocol"
)

// office is the certificate authority that the replicas of a secured shard share: its issuer, its
// trust, and the machines that have joined.
type office struct {
	t  *testing.T
	us identity.Identity

	mu       sync.Mutex
	issuer   *identitytest.Authority
	trust    identity.Trust
	lifetime time.Duration
	refuses  bool
	loses    int      // so many answers of Join, after they have counted
	mute     bool     // no renewal is answered
	joined   string   // key that the token was used with
	joins    []string // keys that were asked with
	issued   int
	shown    []*x509.Certificate // with each hello
	news     chan struct{}       // closed when trust is another
}

func newOffice(t *testing.T, lifetime time.Duration) *office {
	ca := identitytest.New(t, "agents")
	return &office{
		t: t, us: identity.Identity{Shard: "shard-1", Role: identity.Agent, Name: "web-0-a"},
		issuer: ca, trust: identitytest.Trust(ca), lifetime: lifetime, news: make(chan struct{}),
	}
}

// set changes something.
func (o *office) set(change func(*office)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.trust.Digest()
	if change(o); o.trust.Digest() != before {
		close(o.news)
		o.news = make(chan struct{})
	}
}

// credentials returns a replica's credentials, rebuilt for each handshake.
func (o *office) credentials(replica string) credentials.TransportCredentials {
	return credentials.NewTLS(&tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		own := o.issuer.Own(o.t, identity.Identity{Shard: o.us.Shard, Role: identity.Coordinator, Name: replica},
			time.Hour)
		return identity.ServerConfig(own, o.trust), nil
	}})
}

// certificate returns the machine's, on the disk that answering waits for.
func (o *office) certificate(t *testing.T, cfg *Config, log *slog.Logger, answering func()) *certificate.Holder {
	t.Helper()
	o.mu.Lock()
	cfg.Bootstrap.CA = string(o.trust.PEM())
	o.mu.Unlock()
	p, err := certificate.Open(certificate.Config{Bootstrap: cfg.Bootstrap, StateDir: cfg.StateDir}, certificate.Deps{
		Logger: log, Rand: func() float64 { return 0.999 },
		Write: func(path string, data []byte) error {
			answering()
			return os.WriteFile(path, data, 0o600)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Join answers as a gateway does: the token is good once, and again for the same key.
func (r *replica) Join(_ context.Context, asked *protocol.JoinRequest) (*protocol.Certificate, error) {
	o := r.shard.office
	o.mu.Lock()
	defer o.mu.Unlock()
	key, err := identity.ReadRequest(asked.GetRequest())
	if err != nil {
		return nil, status.Error(codes.PermissionDenied, "join refused")
	}
	name, err := identity.KeyPrint(key)
	if err != nil {
		return nil, err
	}
	o.joins = append(o.joins, name)
	if o.refuses || asked.GetProtocol() != protocol.Oldest ||
		asked.GetNewestProtocol() != protocol.Newest || asked.GetShard() != o.us.Shard ||
		asked.GetInstance() != o.us.Name ||
		asked.GetToken() != "join" || o.joined != "" && o.joined != name {
		return nil, status.Error(codes.PermissionDenied, "join refused")
	}
	o.joined = name
	if o.loses > 0 {
		o.loses--
		return nil, status.Error(codes.Unavailable, "connection reset")
	}
	return o.issue(asked.GetRequest()), nil
}

func (o *office) issue(request []byte) *protocol.Certificate {
	o.issued++
	return &protocol.Certificate{Chain: [][]byte{o.issuer.Issue(o.t, request, o.us, o.lifetime)}, Trust: o.trusted()}
}

func (o *office) trusted() *protocol.Trust {
	return &protocol.Trust{Authorities: o.trust.DER(), Issuer: o.trust.Issuer}
}

// desk is the office's side of one stream; nil where streams are not secured.
type desk struct {
	office *office
	ends   time.Time // the newest certificate of this stream
}

// receive looks at who comes.
func (o *office) receive(ctx context.Context, hello *protocol.Hello) (*desk, error) {
	if o == nil {
		return nil, nil
	}
	from, _ := peer.FromContext(ctx)
	state, ok := from.AuthInfo.(credentials.TLSInfo)
	if !ok || len(state.State.PeerCertificates) == 0 {
		return nil, status.Error(codes.PermissionDenied, "no certificate")
	}
	shown := state.State.PeerCertificates[0]
	who, err := identity.Of(shown)
	if err != nil || who != o.us || hello.GetInstance() != who.Name {
		return nil, status.Error(codes.PermissionDenied, "not yours")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shown = append(o.shown, shown)
	return &desk{office: o, ends: shown.NotAfter}, nil
}

// over reports whether the newest certificate has expired.
func (d *desk) over() <-chan time.Time {
	if d == nil {
		return nil
	}
	return time.After(time.Until(d.ends))
}

func (d *desk) tellTrust(stream gatewayStream, believed string) error {
	if d == nil {
		return nil
	}
	d.office.mu.Lock()
	known, now := d.office.trust.Digest() == believed, d.office.trusted()
	d.office.mu.Unlock()
	if known {
		return nil
	}
	return stream.Send(&protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Trust{Trust: now}})
}

func (d *desk) renew(stream gatewayStream, asked *protocol.RenewCertificate) error {
	d.office.mu.Lock()
	if d.office.mute {
		d.office.mu.Unlock()
		return nil
	}
	answer := d.office.issue(asked.GetRequest())
	d.office.mu.Unlock()
	c, err := x509.ParseCertificate(answer.GetChain()[0])
	if err != nil {
		return err
	}
	d.ends = c.NotAfter
	return stream.Send(&protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Certificate{Certificate: answer}})
}

// newTrust is closed when the trust is another one than now.
func (d *desk) newTrust() <-chan struct{} {
	if d == nil {
		return nil
	}
	d.office.mu.Lock()
	defer d.office.mu.Unlock()
	return d.office.news
}
