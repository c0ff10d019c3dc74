package pki

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
)

const shardID = "5ead5ead5ead5ead"

var (
	web     = identity.Identity{Shard: shardID, Role: identity.Agent, Name: "web-1-a7"}
	replica = identity.Identity{Shard: shardID, Role: identity.Coordinator, Name: "coord-a"}
)

// newPlace makes a directory with both authorities.
func newPlace(t *testing.T, agents time.Duration) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pki")
	must(t, Init(dir, map[Kind]time.Duration{Agents: agents, Operators: OperatorsLifetime}))
	return dir
}

func open(t *testing.T, dir string) *Authority {
	t.Helper()
	a, err := Open(dir, slog.New(slog.DiscardHandler))
	must(t, err)
	return a
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, dir string, kind Kind) Files {
	t.Helper()
	f, err := Load(dir, kind)
	must(t, err)
	return f
}

// agentCertificate returns a certificate that an authority has issued to an agent.
func agentCertificate(t *testing.T, s Signer, to identity.Identity, lifetime time.Duration) *tls.Certificate {
	t.Helper()
	key, err := identity.NewKey()
	must(t, err)
	request, err := identity.NewRequest(key)
	must(t, err)
	chain, ends, err := s.Issue(request, to, lifetime)
	must(t, err)
	leaf, err := x509.ParseCertificate(chain[0])
	must(t, err)
	if !leaf.NotAfter.Equal(ends) {
		t.Fatalf("said to end %s, ends %s", ends, leaf.NotAfter)
	}
	return &tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: leaf}
}

// meet lets both sides shake hands and exchange a byte, and returns the client that the server saw
// and how it ended for each.
func meet(t *testing.T, server, client *tls.Config) (seen *tls.ConnectionState, serverErr, clientErr error) {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	done := make(chan error, 1)
	s := tls.Server(far, server)
	go func() {
		err := s.HandshakeContext(t.Context())
		if err == nil {
			_, err = s.Write([]byte("!"))
		}
		done <- err
		_ = far.Close()
	}()
	c := tls.Client(near, client)
	if clientErr = c.HandshakeContext(t.Context()); clientErr == nil {
		_, clientErr = c.Read(make([]byte, 1))
	}
	_ = near.Close()
	serverErr = <-done
	state := s.ConnectionState()
	return &state, serverErr, clientErr
}

func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	must(t, os.CopyFS(to, os.DirFS(from)))
	must(t, filepath.Walk(to, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		return os.Chmod(path, 0o600)
	}))
	return to
}

// serves returns how a coordinator takes streams, with its certificate and its trust of this
// moment.
func serves(t *testing.T, a *Authority) *tls.Config {
	t.Helper()
	own, err := a.Certificate(replica)
	must(t, err)
	return identity.ServerConfig(own, a.Trust())
}
