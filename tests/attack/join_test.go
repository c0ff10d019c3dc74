package attack

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/stage"
)

// silent creates a group whose machines start no agents: the attacker has found their bootstrap
// documents.
func (s *siege) silent(t *testing.T, group string, size int, more ...string) []string {
	t.Helper()
	if err := s.Control.KeepPapers(true); err != nil {
		t.Fatal(err)
	}
	s.Order(group, size, more...)
	s.Await("the machines of "+group, func() bool {
		n := 0
		for _, in := range stage.Records[store.Instance](s.Stage, store.KindInstances) {
			if in.Record.Group == group && in.Record.Phase == store.Booting {
				n++
			}
		}
		return n == size
	})
	if err := s.Control.KeepPapers(false); err != nil {
		t.Fatal(err)
	}
	return s.Instances(group)
}

// token returns an instance's join token.
func (s *siege) token(t *testing.T, instance string) string {
	t.Helper()
	b, err := s.Control.Papers(instance)
	if err != nil {
		t.Fatal(err)
	}
	if b.JoinToken == "" {
		t.Fatalf("%s was given no token", instance)
	}
	return b.JoinToken
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := identity.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func requestOf(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// join asks for a certificate.
func (s *siege) join(t *testing.T, conn *grpc.ClientConn, instance, token string,
	request []byte,
) (*protocol.Certificate, error) {
	return joinWith(t, conn, &protocol.JoinRequest{
		Protocol: 1, Shard: s.shard, Instance: instance, Token: token,
		Request: request,
	})
}

func joinWith(t *testing.T, conn *grpc.ClientConn, r *protocol.JoinRequest) (*protocol.Certificate, error) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return protocol.NewGatewayClient(conn).Join(ctx, r)
}

// joins are attempts to join as an instance without being it.
func joins(t *testing.T, s *siege) {
	ids := s.silent(t, "silent", 4, "registration_timeout: 1h")
	victim, other, raced, gone := ids[0], ids[1], ids[2], ids[3]
	answers := map[string]bool{} // that refusals give
	tried := func(t *testing.T, before stage.Mark, e *attacker, err error, words ...string) {
		t.Helper()
		if err == nil {
			t.Fatal("the attacker got a certificate")
		}
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("answered %v, want permission denied", err)
		}
		answers[err.Error()] = true
		entry := s.recorded(t, before, "SEC-2", append(words, e.from)...)
		t.Logf("%s: %s %v", entry.What, entry.Why, entry.Evidence)
		for _, secret := range []string{s.token(t, victim), s.token(t, other)} {
			if strings.Contains(s.TellJournal(before), secret) {
				t.Error("the journal has the token")
			}
		}
		s.untouched(t, before)
	}
	key := newKey(t)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	forged := requestOf(t, key)
	forged[len(forged)-1] ^= 1 // the signature is invalid
	for _, try := range []struct {
		name   string
		change func(r *protocol.JoinRequest)
		words  []string
	}{
		{"unknown token", func(r *protocol.JoinRequest) { r.Token = store.NewToken() }, []string{victim}},
		{"no token", func(r *protocol.JoinRequest) { r.Token = "" }, nil},
		{
			"the hash for the token", func(r *protocol.JoinRequest) { r.Token = store.TokenHash(r.Token) },
			[]string{victim},
		},
		{"another instance's token", func(r *protocol.JoinRequest) { r.Instance = other }, []string{other}},
		{"an honest instance's name", func(r *protocol.JoinRequest) { r.Instance = s.Instances("web")[0] }, nil},
		{"an instance that there is not", func(r *protocol.JoinRequest) { r.Instance = "web-0-none" }, nil},
		{"another shard", func(r *protocol.JoinRequest) { r.Shard = "0123456789abcdef" }, nil},
		{"a path for a name", func(r *protocol.JoinRequest) { r.Instance = "../groups/web" }, nil},
		{"a key that is not P-256", func(r *protocol.JoinRequest) { r.Request = requestOf(t, p384) }, []string{victim}},
		{
			"a request that its key has not signed", func(r *protocol.JoinRequest) { r.Request = forged },
			[]string{victim},
		},
		{"no request", func(r *protocol.JoinRequest) { r.Request = nil }, nil},
		{"a token without end", func(r *protocol.JoinRequest) { r.Token = strings.Repeat("A", 200<<10) }, nil},
	} {
		s.within(t, try.name, func(t *testing.T) {
			before, e := s.calm(), s.attacker()
			r := &protocol.JoinRequest{
				Protocol: 1, Shard: s.shard, Instance: victim, Token: s.token(t, victim),
				Request: requestOf(t, key),
			}
			try.change(r)
			_, err := joinWith(t, e.connect(t, e.with(nil)), r)
			tried(t, before, e, err, try.words...)
		})
	}
	s.within(t, "a token that was used", func(t *testing.T) {
		honest := s.attacker() // who else would have the papers
		conn := honest.connect(t, honest.with(nil))
		if _, err := s.join(t, conn, victim, s.token(t, victim), requestOf(t, key)); err != nil {
			t.Fatalf("the machine itself is refused, after all that went before: %v", err)
		}
		if _, err := s.join(t, conn, victim, s.token(t, victim), requestOf(t, key)); err != nil {
			t.Fatalf("the machine itself is refused when it asks again: %v", err)
		}
		before, e := s.calm(), s.attacker()
		_, err := s.join(t, e.connect(t, e.with(nil)), victim, s.token(t, victim), requestOf(t, newKey(t)))
		tried(t, before, e, err, victim)
	})
	s.within(t, "a token whose instance is going", func(t *testing.T) {
		token := s.token(t, gone)
		s.Leasehold("instance", "delete", gone, "--confirm="+gone)
		s.Await("the end of "+gone, func() bool {
			in, there := stage.Records[store.Instance](s.Stage, store.KindInstances)[gone]
			return !there || in.Record.Phase == store.Deleting
		})
		before, e := s.Mark(), s.attacker()
		_, err := s.join(t, e.connect(t, e.with(nil)), gone, token, requestOf(t, newKey(t)))
		if status.Code(err) != codes.PermissionDenied {
			t.Fatalf("answered %v, want permission denied", err)
		}
		answers[err.Error()] = true
		s.recorded(t, before, "SEC-2", gone, e.from)
	})
	s.within(t, "a thousand at once with one token", func(t *testing.T) { race(t, s, raced) })
	if len(answers) != 1 {
		t.Errorf("refusals can be told apart: %v", answers)
	}
	s.remove("silent")
}

// race makes a thousand keys compete for one token, at both replicas: exactly one may win.
func race(t *testing.T, s *siege, raced string) {
	const rivals, lines = 1000, 20
	token := s.token(t, raced)
	var conns []*grpc.ClientConn
	for i := range lines {
		e := s.attacker()
		conn, err := grpc.NewClient("passthrough:///"+s.Addresses[string(rune('a'+i%2))],
			grpc.WithTransportCredentials(e.with(nil)), grpc.WithContextDialer(e.dial))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	requests := make([][]byte, rivals)
	for i := range requests {
		requests[i] = requestOf(t, newKey(t))
	}
	start, won := make(chan struct{}), make(chan *protocol.Certificate, rivals)
	var all sync.WaitGroup
	var mu sync.Mutex
	others := map[codes.Code]int{}
	for i, r := range requests {
		all.Go(func() {
			<-start
			c, err := s.join(t, conns[i%lines], raced, token, r)
			if err == nil {
				won <- c
				return
			}
			mu.Lock()
			others[status.Code(err)]++
			mu.Unlock()
		})
	}
	close(start)
	all.Wait()
	t.Logf("%d won, the others: %v", len(won), others)
	if len(won) != 1 {
		t.Fatalf("%d of %d rivals won", len(won), rivals)
	}
	joined, there := stage.Records[store.Joined](s.Stage, store.KindJoined)[raced]
	if !there {
		t.Fatal(errors.New("who joined is not recorded"))
	}
	c, err := x509.ParseCertificate((<-won).GetChain()[0])
	if err != nil {
		t.Fatal(err)
	}
	public, ok := c.PublicKey.(*ecdsa.PublicKey)
	if !ok {
		t.Fatalf("a certificate over a %T", c.PublicKey)
	}
	if winner, err := identity.KeyPrint(public); err != nil || winner != joined.Record.Key {
		t.Errorf("key %s won, and %s is recorded (%v)", winner, joined.Record.Key, err)
	}
}
