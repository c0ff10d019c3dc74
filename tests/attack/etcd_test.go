package attack

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/embedetcd"
	"github.com/leasehold/leasehold/tests/certs"
)

// What an agent holds, and what anyone could make who has stolen the agents' authority, opens
// nothing in etcd: not even with root for its name, and before authentication is turned on.
//
// proves SEC-4
func TestAgentsCredentialsOpenNothingInEtcd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	place, err := certs.Make(dir)
	if err != nil {
		t.Fatal(err)
	}
	issue := func(o pki.Order) pki.Issued {
		t.Helper()
		issued, err := pki.IssueOperator(place, o)
		if err != nil {
			t.Fatal(err)
		}
		return issued
	}
	server, root := issue(pki.Order{Name: "etcd", Hosts: []string{"127.0.0.1"}}),
		issue(pki.Order{Name: "root"})
	ca := filepath.Join(place, "operators", "ca.crt")
	etcd, err := embedetcd.Start(t.Context(), embedetcd.Config{
		DataDir: filepath.Join(dir, "etcd"), Listen: "127.0.0.1:0", NoSync: true,
		TLS: &embedetcd.TLS{Cert: server.File, Key: server.Key, ClientCA: ca},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	believed := x509.NewCertPool()
	text, err := os.ReadFile(ca)
	if err != nil || !believed.AppendCertsFromPEM(text) {
		t.Fatalf("read %s: %v", ca, err)
	}
	own, err := tls.LoadX509KeyPair(root.File, root.Key)
	if err != nil {
		t.Fatal(err)
	}
	stolen := stolenFrom(t, place)
	agent := paper{uri: "leasehold://s/agent/web-0-a", from: -time.Hour, to: time.Hour, use: x509.ExtKeyUsageClientAuth}
	asRoot := agent
	asRoot.commonName = "root"
	for _, try := range []struct {
		name string
		own  *tls.Certificate
		in   bool
	}{
		{"root", &own, true},
		{"an agent", stolen.forge(t, agent), false},
		{"an agent that calls itself root", stolen.forge(t, asRoot), false},
		{"no user", nil, false},
	} {
		t.Run(try.name, func(t *testing.T) {
			conf := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: believed, NextProtos: []string{"h2"}}
			if try.own != nil { // whatever authorities the server requests
				conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate,
					error,
				) {
					return try.own, nil
				}
			}
			if !try.in {
				conn, err := tls.Dial("tcp", strings.TrimPrefix(etcd.Endpoint(), "https://"), conf)
				if err == nil {
					defer conn.Close()
					_, err = conn.Read(make([]byte, 1)) // a server that has refused says so after the handshake
				}
				var alert *net.OpError
				if !errors.As(err, &alert) || alert.Op != "remote error" {
					t.Errorf("etcd does not refuse the connection: %v", err)
				}
				return
			}
			client, err := clientv3.New(clientv3.Config{
				Endpoints: []string{etcd.Endpoint()}, TLS: conf,
				Logger: zap.NewNop(),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if _, err := client.Put(ctx, store.KeysOf("default").Shard(), "mine"); err != nil {
				t.Errorf("root does not get in: %v", err)
			}
		})
	}
}
