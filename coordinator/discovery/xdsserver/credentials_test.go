package xdsserver_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/coordinator/access"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/discovery"
	"github.com/leasehold/leasehold/coordinator/discovery/xdsserver"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/harness"
)

const token = "correct-horse-battery-staple"

// certDir makes a directory of certificates as leasehold pki init does.
func certDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pki")
	if err := pki.Init(dir, map[pki.Kind]time.Duration{pki.Agents: time.Hour, pki.Operators: time.Hour}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func issue(t *testing.T, dir, name string, hosts ...string) pki.Issued {
	t.Helper()
	issued, err := pki.IssueOperator(dir, pki.Order{Name: name, Hosts: hosts, Lifetime: 30 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return issued
}

func pair(t *testing.T, issued pki.Issued) *tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(issued.File, issued.Key)
	if err != nil {
		t.Fatal(err)
	}
	return &pair
}

// agentPair returns what an agent has got for itself.
func agentPair(t *testing.T, dir string) *tls.Certificate {
	t.Helper()
	a, err := pki.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	key, err := identity.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	request, err := identity.NewRequest(key)
	if err != nil {
		t.Fatal(err)
	}
	chain, _, err := a.Issue(request, identity.Identity{Shard: "s", Role: identity.Agent, Name: "web-0"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: chain, PrivateKey: key}
}

// proves LB-4: who may not read over HTTP may not read by xDS
func TestXDSAsksForCredentials(t *testing.T) {
	t.Parallel()
	dir := certDir(t)
	server := issue(t, dir, "xds", "127.0.0.1")
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	ca := func(kind pki.Kind) string { return filepath.Join(dir, string(kind), "ca.crt") }
	s := serve(t, "0.0.0.0:0", access.Config{
		CertFile: server.File, KeyFile: server.Key, TokenFile: file, ClientCAFile: ca(pki.Operators),
	})
	mistaken := serve(t, "0.0.0.0:0", access.Config{ // it believes the agents' authority
		CertFile: server.File, KeyFile: server.Key, ClientCAFile: ca(pki.Agents),
	})
	text, err := os.ReadFile(ca(pki.Operators))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	elsewhere := certDir(t)
	for _, test := range []struct {
		name   string
		at     *shard
		own    *tls.Certificate
		header string
		want   codes.Code
	}{
		{"nothing", s, nil, "", codes.Unauthenticated},
		{"the token", s, nil, "Bearer " + token, codes.OK},
		{"another token", s, nil, "Bearer " + token + "x", codes.Unauthenticated},
		{"the token without its scheme", s, nil, token, codes.Unauthenticated},
		{"an operator", s, pair(t, issue(t, dir, "envoy")), "", codes.OK},
		{"an operator of elsewhere", s, pair(t, issue(t, elsewhere, "envoy")), "", codes.Unavailable},
		{"an agent", s, agentPair(t, dir), "", codes.Unavailable},
		{"an agent whose authority is believed by mistake", mistaken, agentPair(t, dir), "", codes.Unauthenticated},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, port, _ := net.SplitHostPort(test.at.server.Address())
			config := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, ServerName: "127.0.0.1"}
			if test.own != nil {
				config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return test.own, nil }
			}
			conn, err := grpc.NewClient("127.0.0.1:"+port, grpc.WithTransportCredentials(credentials.NewTLS(config)))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			try := func() error {
				ctx := t.Context()
				if test.header != "" {
					ctx = metadata.AppendToOutgoingContext(ctx, "authorization", test.header)
				}
				stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
				if err != nil {
					return err
				}
				ask := &discoveryv3.DiscoveryRequest{TypeUrl: resource.ListenerType, ResourceNames: []string{"web"}}
				if err := stream.Send(ask); err != nil {
					return err
				}
				header, err := stream.Header()
				if _, failed := stream.Recv(); failed != nil {
					return failed
				}
				if len(header.Get("leasehold-age")) == 0 {
					t.Error("it does not say how old the answer is")
				}
				return err
			}
			var is codes.Code
			// it may not have read the shard yet
			harness.Await(t, test.want.String(), longest, 10*time.Millisecond, func() bool {
				is = status.Code(try())
				return is == test.want
			}, func() string { return is.String() })
		})
	}
}

func TestXDSIsNotServedUnsecured(t *testing.T) {
	t.Parallel()
	server := issue(t, certDir(t), "xds", "127.0.0.1")
	for name, files := range map[string]access.Config{
		"no TLS": {}, "clients are not authenticated": {CertFile: server.File, KeyFile: server.Key},
	} {
		s, err := xdsserver.New(xdsserver.Config{Listen: "0.0.0.0:0", Access: files},
			discovery.NewDirectory(cache.New(store.KeysOf("main"))), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		var unsafe *access.UnsafeError
		if err := s.Listen(t.Context()); !errors.As(err, &unsafe) || unsafe.Next == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
