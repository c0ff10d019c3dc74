package certificate

import (
	"crypto/ecdsa"
	"crypto/tls"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/identity/identitytest"
	"github.com/leasehold/leasehold/provider"
)

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := identity.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// handshake connects to a coordinator with this certificate. It returns the name that the
// coordinator saw, "" for none.
func handshake(t *testing.T, h *holder, bare bool, server *tls.Certificate, trust identity.Trust) (seen string,
	err error,
) {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	done := make(chan string, 1)
	go func() {
		conn := tls.Server(far, identity.ServerConfig(server, trust))
		defer conn.Close()
		if conn.Handshake() != nil {
			done <- "refused"
			return
		}
		if certs := conn.ConnectionState().PeerCertificates; len(certs) > 0 {
			who, _ := identity.Of(certs[0])
			done <- who.String()
			return
		}
		done <- ""
	}()
	c, _ := h.Credentials(bare)
	var conn net.Conn
	if conn, _, err = c.ClientHandshake(t.Context(), "a:1", near); err == nil {
		go func() { _, _ = conn.Read(make([]byte, 1)) }() // a pipe has no room for an alert
	} else {
		_ = near.Close()
	}
	return <-done, err
}

// proves SEC-1
func TestConnectionsShowAndBelieveWhatIsInForceThen(t *testing.T) {
	bubble(t, func(t *testing.T, ca *identitytest.Authority, dir string) {
		h := hold(t, ca, dir, nil)
		defer h.stop()
		coordinator := identity.Identity{Shard: us.Shard, Role: identity.Coordinator, Name: "coord-a"}
		trust := identitytest.Trust(ca)
		server := ca.Own(t, coordinator, 2*month)
		for _, bare := range []bool{true, false} {
			if seen, err := handshake(t, h, bare, server, trust); seen != "" || err != nil {
				t.Errorf("before the join a coordinator saw %q, %v", seen, err)
			}
		}
		h.join(month)
		if seen, err := handshake(t, h, false, server, trust); seen != us.String() || err != nil {
			t.Errorf("after the join a coordinator saw %q, %v", seen, err)
		}
		if seen, err := handshake(t, h, true, server, trust); seen != "" || err != nil {
			t.Errorf("a bare connection showed %q, %v", seen, err)
		}
		next := identitytest.New(t, "agents 2")
		foreign := next.Own(t, coordinator, month)
		if _, err := handshake(t, h, false, foreign, trust); err == nil ||
			!strings.Contains(err.Error(), "not signed by an authority that this machine trusts") {
			t.Errorf("a foreign authority's coordinator: %v", err)
		}
		h.SetTrust(told(identitytest.Trust(ca, next)))
		passed(0)
		if seen, err := handshake(t, h, false, foreign, trust); seen != us.String() || err != nil {
			t.Errorf("once it is believed: %q, %v", seen, err)
		}
		for name, c := range map[string]struct {
			server *tls.Certificate
			want   string
		}{
			"another shard's": {ca.Own(t, identity.Identity{Shard: "s2", Role: identity.Coordinator, Name: "coord-a"},
				month), "another shard"},
			"an agent as one": {ca.Own(t, identity.Identity{Shard: us.Shard, Role: identity.Agent, Name: "web-1-b"},
				month), "certificate"},
			"one that is over": {ca.Own(t, coordinator, -time.Minute), "the clock of this machine says 2000-01-01"},
		} {
			if _, err := handshake(t, h, false, c.server, trust); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
	})
}

func TestCredentialsAreAClientsAlone(t *testing.T) {
	bubble(t, func(t *testing.T, ca *identitytest.Authority, dir string) {
		h := hold(t, ca, dir, nil)
		defer h.stop()
		c, _ := h.Credentials(false)
		near, far := net.Pipe()
		defer near.Close()
		defer far.Close()
		if _, _, err := c.ServerHandshake(near); err == nil {
			t.Error("an agent serves")
		}
		if c.Clone() == credentials.TransportCredentials(nil) || c.Info().SecurityProtocol != "tls" {
			t.Error("credentials are not TLS")
		}
	})
}

// proves SEC-1
func TestOpenRefusesWhatCannotWork(t *testing.T) {
	ca := string(identitytest.Trust(identitytest.New(t, "agents")).PEM())
	good := provider.Bootstrap{Instance: us.Name, Shard: us.Shard, CA: ca}
	for name, c := range map[string]struct {
		change func(*provider.Bootstrap)
		want   string
	}{
		"no CA": {func(b *provider.Bootstrap) { b.CA = "" }, "leasehold pki init"},
		"rubbish": {
			func(b *provider.Bootstrap) { b.CA = "rubbish" },
			"bootstrap document: ca: no certificate authority",
		},
		"bad shard":   {func(b *provider.Bootstrap) { b.Shard = "a/b" }, "a/b"},
		"no instance": {func(b *provider.Bootstrap) { b.Instance = "" }, "is not a name"},
	} {
		b := good
		c.change(&b)
		_, err := Open(Config{Bootstrap: b, StateDir: t.TempDir()}, Deps{Logger: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := Open(Config{Bootstrap: good}, Deps{Logger: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("no state directory: no error")
	}
}
