package web_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/coordinator/access"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/coordinator/web"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

const token = "correct-horse-battery-staple"

// still is a replica that does nothing: what it says of itself, the test has set.
type still struct {
	mu     sync.Mutex
	status coordinator.ReplicaStatus
	cache  *cache.Cache

	certificates     []coordinator.Certificate
	orphans, missing int
}

func newStill() *still { return &still{cache: cache.New(store.KeysOf("test"))} }

func (s *still) Status() coordinator.ReplicaStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

func (s *still) set(status coordinator.ReplicaStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// ready is a replica that serves agents, and goes on hearing etcd.
func ready(now time.Time) coordinator.ReplicaStatus {
	return coordinator.ReplicaStatus{EtcdHeard: now.Add(time.Hour), Serving: "127.0.0.1:7420"}
}

func (s *still) Cache() *cache.Cache { return s.cache }

func (s *still) CountMachines() (orphans, missing int, leads bool) {
	return s.orphans, s.missing, s.Status().Leads
}

func (s *still) Certificates() []coordinator.Certificate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.certificates
}

// site is a server under test.
type site struct {
	t      testing.TB
	server *web.Server
	client *http.Client
	logged *lines
}

// lines is a log.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// idle is what a server needs, with nothing in it.
func idle(t testing.TB) web.Deps {
	t.Helper()
	db := memstore.New(memstore.Config{})
	t.Cleanup(db.Close)
	return web.Deps{
		Replica: newStill(), Metrics: web.NewMetrics("test"), Store: db.Connect(), Logger: slog.New(slog.DiscardHandler),
	}
}

// open serves until the test ends.
func open(t testing.TB, cfg web.Config, deps web.Deps) *site {
	t.Helper()
	logged := &lines{}
	deps.Logger = slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	nothing := idle(t)
	if deps.Replica == nil {
		deps.Replica = nothing.Replica
	}
	if deps.Metrics == nil {
		deps.Metrics = nothing.Metrics
	}
	if deps.Store == nil {
		deps.Store = nothing.Store
	}
	cfg.Shard, cfg.ReplicaID = "test", "coord-a"
	server, err := web.New(cfg, deps)
	if err == nil {
		err = server.Listen(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v", err)
		}
	})
	return &site{
		t: t, server: server,
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Minute}, logged: logged,
	}
}

// get asks for a page.
func (s *site) get(path string, more ...func(*http.Request)) (code int, body string, headers http.Header) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.server.URL()+path, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, m := range more {
		m(r)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header
}

func with(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func asked(host string) func(*http.Request) { return func(r *http.Request) { r.Host = host } }

// say sends a text as it is, and returns the status line of the answer and what follows it.
func (s *site) say(text string) (status, rest string) {
	s.t.Helper()
	conn := s.dial()
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err.Error() // cut off before all was said
	}
	return answer(conn)
}

func (s *site) dial() net.Conn {
	s.t.Helper()
	conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", s.server.Address())
	if err != nil {
		s.t.Fatal(err)
	}
	return conn
}

// answer reads one answer; "" if the connection ends without.
func answer(conn net.Conn) (status, rest string) {
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "", err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.Status, fmt.Sprint(resp.Header, "\n", string(body))
}

// certDir is a directory of certificates as leasehold pki init makes it, with a server's
// certificate in it.
type certDir struct {
	t      *testing.T
	dir    string
	server pki.Issued
}

func newPKI(t *testing.T) *certDir {
	t.Helper()
	p := &certDir{t: t, dir: filepath.Join(t.TempDir(), "pki")}
	if err := pki.Init(p.dir,
		map[pki.Kind]time.Duration{pki.Agents: time.Hour, pki.Operators: time.Hour}); err != nil {
		t.Fatal(err)
	}
	p.server = p.operator("http", "127.0.0.1")
	return p
}

func (p *certDir) ca(kind pki.Kind) string { return filepath.Join(p.dir, string(kind), "ca.crt") }

func (p *certDir) operator(name string, hosts ...string) pki.Issued {
	p.t.Helper()
	issued, err := pki.IssueOperator(p.dir,
		pki.Order{Name: name, Hosts: hosts, Lifetime: 30 * time.Minute, Renew: true})
	if err != nil {
		p.t.Fatal(err)
	}
	return issued
}

// pair is what an operator shows.
func (p *certDir) pair(issued pki.Issued) *tls.Certificate {
	p.t.Helper()
	pair, err := tls.LoadX509KeyPair(issued.File, issued.Key)
	if err != nil {
		p.t.Fatal(err)
	}
	return &pair
}

// agent is what an agent has got for itself.
func (p *certDir) agent() *tls.Certificate {
	p.t.Helper()
	a, err := pki.Open(p.dir, slog.New(slog.DiscardHandler))
	if err != nil {
		p.t.Fatal(err)
	}
	key, err := identity.NewKey()
	if err != nil {
		p.t.Fatal(err)
	}
	request, err := identity.NewRequest(key)
	if err != nil {
		p.t.Fatal(err)
	}
	chain, _, err := a.Issue(request, identity.Identity{Shard: "s", Role: identity.Agent, Name: "web-0"}, time.Minute)
	if err != nil {
		p.t.Fatal(err)
	}
	return &tls.Certificate{Certificate: chain, PrivateKey: key}
}

// everywhere is the configuration of a server that is reached from other machines: on an address of
// this one that is not loopback, if it has any.
func (p *certDir) everywhere() web.Config {
	return web.Config{Listen: "0.0.0.0:0", Access: access.Config{CertFile: p.server.File, KeyFile: p.server.Key}}
}

// shows has the client of a site believe the operators' authority, and show a certificate, if any.
func (p *certDir) shows(s *site, own *tls.Certificate) *site {
	p.t.Helper()
	text, err := os.ReadFile(p.ca(pki.Operators))
	if err != nil {
		p.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	c := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, ServerName: "127.0.0.1"}
	if own != nil {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own, nil }
	}
	other := *s
	other.t = p.t
	other.client = &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: c},
		Timeout:   5 * time.Minute,
	}
	return &other
}

// secret writes a file that no other user may read.
func secret(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// eventually polls until what is looked for is so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !so(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within a minute", what)
		}
		<-tick.C
	}
}
