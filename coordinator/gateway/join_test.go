package gateway_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// machine is a machine that has made its key.
type machine struct {
	t        *testing.T
	key      *ecdsa.PrivateKey
	instance string
	request  []byte
}

func newMachine(t *testing.T, instance string) *machine {
	t.Helper()
	key, err := identity.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	request, err := identity.NewRequest(key)
	if err != nil {
		t.Fatal(err)
	}
	return &machine{t: t, key: key, instance: instance, request: request}
}

func (m *machine) asks(token string) *protocol.JoinRequest {
	return &protocol.JoinRequest{Protocol: 1, Shard: shardID, Instance: m.instance, Token: token, Request: m.request}
}

// joins calls Join on a connection of its own.
func (r *replica) joins(own *tls.Certificate, req *protocol.JoinRequest) (*protocol.Certificate, error) {
	r.w.t.Helper()
	conn := r.dial(own)
	defer conn.Close()
	c, err := protocol.NewGatewayClient(conn).Join(r.w.t.Context(), req)
	synctest.Wait()
	return c, err
}

// pair returns the certificate that the machine was given.
func (m *machine) pair(c *protocol.Certificate) *tls.Certificate {
	m.t.Helper()
	leaf, err := x509.ParseCertificate(c.GetChain()[0])
	if err != nil {
		m.t.Fatal(err)
	}
	if who, err := identity.Of(leaf); err != nil || who != agentOf(m.instance) {
		m.t.Fatalf("the certificate names %v (%v), want %s", who, err, agentOf(m.instance))
	}
	return &tls.Certificate{Certificate: c.GetChain(), PrivateKey: m.key, Leaf: leaf}
}

// looksRefused reports whether an error is the common error of refusals.
func looksRefused(err error) bool {
	return err != nil && status.Code(err) == codes.PermissionDenied && status.Convert(err).Message() == "join refused"
}

// trust returns all that is stored of tokens and of who joined.
func (w *world) trust() string {
	w.t.Helper()
	var b strings.Builder
	for _, kind := range []string{store.KindTokens, store.KindJoined, store.KindInstances, store.KindAlive} {
		l, err := w.store.List(w.t.Context(), w.keys.Of(kind), 0)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, kv := range l.KVs {
			fmt.Fprintf(&b, "%s at %d\n", kv.Key, kv.Modified)
		}
	}
	return b.String()
}

// proves SEC-2
func TestMachineJoinsWithItsTokenAndOpensItsStream(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Booting)
		token := w.token("web-0", time.Hour)
		hash := store.TokenHash(token)
		lease := read[store.JoinToken](w, w.keys.Token(hash)).Lease
		m := newMachine(w.t, "web-0")
		c, err := r.joins(nil, m.asks(token))
		if err != nil {
			t.Fatal(err)
		}
		if trust, err := identity.TrustOf(c.GetTrust().GetAuthorities(), c.GetTrust().GetIssuer()); err != nil ||
			trust.Digest() != w.ca.Trust().Digest() {
			t.Errorf("it is told to believe %v (%v)", trust, err)
		}
		r.own = m.pair(c)
		if lasts := time.Until(r.own.Leaf.NotAfter); lasts < 29*24*time.Hour {
			t.Errorf("the certificate lasts %s, want 30 days", lasts)
		}
		joined := read[store.Joined](w, w.keys.Joined("web-0")).Record
		fingerprint, _ := identity.KeyPrint(&m.key.PublicKey)
		if joined.Token != hash || joined.Key != fingerprint || joined.Replica != "one" ||
			read[store.JoinToken](w, w.keys.Token(hash)).Present() {
			t.Errorf("joined %+v, and the token is there: %v", joined,
				read[store.JoinToken](w, w.keys.Token(hash)).Present())
		}
		if _, err := w.store.Renew(w.t.Context(), lease); err == nil {
			t.Error("the token's lease is still there")
		}
		if e := r.entries(); len(e) != 1 || e[0].Rule != "SEC-2" || e[0].What != "machine joined" ||
			e[0].Instance != "web-0" {
			t.Errorf("the journal has %+v", e)
		}
		defer r.welcomed(hello("web-0", "boot1", 1)).hangUp()

		// The answer may be lost: the same key may ask again, at any time before its instance is
		// deleted, also over its new connection.
		w.record("web-0", store.Running)
		for _, own := range []*tls.Certificate{nil, r.own} {
			if again, err := r.joins(own, m.asks(token)); err != nil {
				t.Errorf("the same key with the same token: %v", err)
			} else {
				m.pair(again)
			}
		}
		w.record("web-0", store.Deleting)
		if _, err := r.joins(nil, m.asks(token)); !looksRefused(err) {
			t.Errorf("its instance is being deleted: %v", err)
		}
	})
}

// proves SEC-2
func TestRefusedJoinsLookAlikeAndAreRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		why   string
		spoil func(w *world, req *protocol.JoinRequest) *tls.Certificate // returns what the connection shows
	}{
		"unknown token": {"token unknown or expired", func(_ *world, req *protocol.JoinRequest) *tls.Certificate {
			req.Token = store.NewToken()
			return nil
		}},
		"expired token": {"token unknown or expired", func(_ *world, _ *protocol.JoinRequest) *tls.Certificate {
			pass(2 * time.Hour)
			return nil
		}},
		"another instance's token": {
			"the token is another instance's",
			func(w *world, req *protocol.JoinRequest) *tls.Certificate {
				w.record("web-1", store.Booting)
				req.Token = w.token("web-1", time.Hour)
				return nil
			},
		},
		"another shard": {"it is for another shard", func(_ *world, req *protocol.JoinRequest) *tls.Certificate {
			req.Shard = "other"
			return nil
		}},
		"a path for a name": {"the call is malformed", func(_ *world, req *protocol.JoinRequest) *tls.Certificate {
			req.Instance = "../instances/web-0"
			return nil
		}},
		"no token": {"the call is malformed", func(_ *world, req *protocol.JoinRequest) *tls.Certificate {
			req.Token = ""
			return nil
		}},
		"long token": {"the call is malformed", func(_ *world, req *protocol.JoinRequest) *tls.Certificate {
			req.Token = strings.Repeat("x", 201)
			return nil
		}},
		"no request": {
			"the request is malformed, or its key is not ECDSA P-256 or has not signed it",
			func(_ *world, req *protocol.JoinRequest) *tls.Certificate {
				req.Request = nil
				return nil
			},
		},
		"another kind of key": {
			"the request is malformed, or its key is not ECDSA P-256 or has not signed it",
			func(w *world, req *protocol.JoinRequest) *tls.Certificate {
				key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
				if err != nil {
					w.t.Fatal(err)
				}
				if req.Request, err = identity.NewRequest(key); err != nil {
					w.t.Fatal(err)
				}
				return nil
			},
		},
		"not signed by its key": {
			"the request is malformed, or its key is not ECDSA P-256 or has not signed it",
			func(_ *world, req *protocol.JoinRequest) *tls.Certificate {
				req.Request[len(req.Request)-1] ^= 1
				return nil
			},
		},
		"no longer waited for": {
			"the instance is no longer waited for",
			func(w *world, _ *protocol.JoinRequest) *tls.Certificate {
				w.record("web-0", store.Draining)
				return nil
			},
		},
		"being deleted": {"the instance is gone", func(w *world, _ *protocol.JoinRequest) *tls.Certificate {
			w.record("web-0", store.Deleting)
			return nil
		}},
		"gone": {"the instance is gone", func(w *world, _ *protocol.JoinRequest) *tls.Certificate {
			w.remove(w.keys.Instance("web-0"))
			return nil
		}},
		"replayed with another key": {
			"the token was used with another key",
			func(w *world, req *protocol.JoinRequest) *tls.Certificate {
				w.put(w.keys.Joined("web-0"), store.Encode(store.Joined{
					Schema: store.Schema, Instance: "web-0",
					Token: store.TokenHash(req.GetToken()), Key: "other",
				}))
				w.remove(w.keys.Token(store.TokenHash(req.GetToken())))
				return nil
			},
		},
		"another of its tokens was used": {
			"the instance has joined with another of its tokens",
			func(w *world, _ *protocol.JoinRequest) *tls.Certificate {
				w.put(w.keys.Joined("web-0"), store.Encode(store.Joined{
					Schema: store.Schema, Instance: "web-0",
					Token: "other", Key: "other",
				}))
				return nil
			},
		},
		"on another's connection": {
			"the connection shows another's certificate",
			func(w *world, _ *protocol.JoinRequest) *tls.Certificate {
				return w.ca.agent("web-1", time.Hour)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inSecuredWorld(t, func(w *world) {
				r := w.serve("one")
				defer r.stop()
				w.record("web-0", store.Booting)
				req := newMachine(w.t, "web-0").asks(w.token("web-0", time.Hour))
				own := c.spoil(w, req)
				synctest.Wait()
				before := w.trust()
				for range 3 {
					if _, err := r.joins(own, req); !looksRefused(err) {
						t.Fatalf("the answer is %v, want the one that tells nothing", err)
					}
				}
				if e := r.entries(); len(e) != 1 || e[0].Rule != "SEC-2" || e[0].What != "join refused" ||
					e[0].Why != c.why || !strings.Contains(fmt.Sprint(reason.Lines(e[0].Facts)), "from bufconn") {
					t.Errorf("the journal has %+v, want one refusal, because %s", e, c.why)
				}
				pass(time.Minute)
				if e := r.entries(); len(e) != 2 || e[1].What != "join refused: 2 more" || e[1].Why != c.why {
					t.Errorf("the journal has %+v, want the sum of the two others", e)
				}
				if after := w.trust(); after != before && name != "expired token" {
					t.Errorf("etcd has\n%sbut had\n%s", after, before)
				}
			})
		})
	}
}

// The first machine wins and no other, on any replica, with any token of the instance, even if
// answers are lost.
//
// proves SEC-2
func TestOfAThousandUsesOfATokenExactlyOneWins(t *testing.T) {
	machines := make([]*machine, 1000)
	for i := range machines {
		machines[i] = newMachine(t, "web-0")
	}
	for _, trouble := range []struct {
		name string
		make func(*replica)
	}{
		{"calm", func(*replica) {}},
		{"answers are lost", func(r *replica) { r.store.Faults().LoseAnswer() }},
		{"writes are lost", func(r *replica) { r.store.Faults().LoseRequest() }},
		{"etcd is slow", func(r *replica) { r.slowsDown(1) }},
		{"etcd is slow and answers are lost", func(r *replica) {
			r.slowsDown(2)
			r.store.Faults().LoseAnswer()
		}},
	} {
		t.Run(trouble.name, func(t *testing.T) {
			inSecuredWorld(t, func(w *world) {
				one, two := w.serve("one"), w.serve("two")
				defer one.stop()
				defer two.stop()
				w.record("web-0", store.Creating)
				tokens := []string{w.token("web-0", time.Hour), w.token("web-0", time.Hour)}
				uses := func(m *machine) *protocol.JoinRequest { return m.asks(tokens[slices.Index(machines, m)/2%2]) }
				conns := []*grpc.ClientConn{one.dial(nil), two.dial(nil)}
				defer conns[0].Close()
				defer conns[1].Close()
				trouble.make(one)
				trouble.make(two)
				var mu sync.Mutex
				var winners []*machine
				var calls sync.WaitGroup
				for i, m := range machines {
					calls.Go(func() {
						_, err := protocol.NewGatewayClient(conns[i%2]).Join(w.t.Context(), uses(m))
						switch {
						case err == nil:
							mu.Lock()
							defer mu.Unlock()
							winners = append(winners, m)
						case !looksRefused(err) && status.Code(err) != codes.Unavailable:
							t.Errorf("a loser is told %v", err)
						}
					})
				}
				calls.Wait()
				if len(winners) != 1 {
					t.Fatalf("%d have won, want one", len(winners))
				}
				fingerprint, _ := identity.KeyPrint(&winners[0].key.PublicKey)
				if joined := read[store.Joined](w, w.keys.Joined("web-0")).Record; joined.Key != fingerprint {
					t.Errorf("etcd says that %s has joined, and %s was told so", joined.Key, fingerprint)
				}
				synctest.Wait()
				for _, m := range machines[:20] {
					if m == winners[0] {
						continue
					}
					if _, err := two.joins(nil, uses(m)); !looksRefused(err) {
						t.Fatalf("a loser comes again and is told %v", err)
					}
				}
				if _, err := two.joins(nil, uses(winners[0])); err != nil {
					t.Errorf("the winner comes again and is told %v", err)
				}
			})
		})
	}
}

// Between what was read and what is written anything may happen; and a replica may die after it has
// written.
//
// proves SEC-2
func TestJoinRacesWithTheEndOfItsInstance(t *testing.T) {
	for name, happens := range map[string]func(*world){
		"deleted":       func(w *world) { w.record("web-0", store.Deleting) },
		"gone":          func(w *world) { w.remove(w.keys.Instance("web-0")) },
		"token expired": func(w *world) { w.db.Faults().DropLease(w.onlyToken().Lease) },
		"joined with another token": func(w *world) {
			w.put(w.keys.Joined("web-0"), store.Encode(store.Joined{
				Schema: store.Schema, Instance: "web-0",
				Token: "other", Key: "other",
			}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inSecuredWorld(t, func(w *world) {
				r := w.serve("one")
				defer r.stop()
				w.record("web-0", store.Booting)
				token := w.token("web-0", time.Hour)
				synctest.Wait()
				r.beforeCommitting(w.keys.Joined("web-0"), func() { happens(w) })
				if _, err := r.joins(nil, newMachine(w.t, "web-0").asks(token)); !looksRefused(err) {
					t.Errorf("the answer is %v", err)
				}
				if joined := read[store.Joined](w, w.keys.Joined("web-0")); joined.Present() &&
					joined.Record.Key != "other" {
					t.Error("it has joined")
				}
			})
		})
	}
}

// proves SEC-2
func TestReplicaDiesAfterAMachineHasJoined(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		one, two := w.serve("one"), w.serve("two")
		defer one.stop()
		defer two.stop()
		w.record("web-0", store.Booting)
		token := w.token("web-0", time.Hour)
		synctest.Wait()
		m := newMachine(w.t, "web-0")
		one.afterCommitting(w.keys.Joined("web-0"), func() { one.store.Faults().Cut() })
		if _, err := one.joins(nil, m.asks(token)); status.Code(err) != codes.Unavailable {
			t.Fatalf("the answer is %v, want that it is not known", err)
		}
		if !read[store.Joined](w, w.keys.Joined("web-0")).Present() {
			t.Fatal("nothing was written")
		}
		if read[store.JoinToken](w, w.keys.Token(store.TokenHash(token))).Present() {
			t.Error("the token is still there")
		}
		if c, err := two.joins(nil, m.asks(token)); err != nil {
			t.Errorf("it asks again elsewhere: %v", err)
		} else {
			m.pair(c)
		}
		if _, err := two.joins(nil, newMachine(w.t, "web-0").asks(token)); !looksRefused(err) {
			t.Errorf("another machine with the token: %v", err)
		}
	})
}

// proves SEC-2, SEC-5
func TestUnknownTokensCostEtcdNextToNothing(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Booting)
		conn := r.dial(nil)
		defer conn.Close()
		m := newMachine(w.t, "web-0")
		const tries = 5000
		for range tries {
			if _, err := protocol.NewGatewayClient(conn).Join(w.t.Context(),
				m.asks(store.NewToken())); !looksRefused(err) {
				t.Fatalf("the answer is %v", err)
			}
		}
		pass(time.Minute)
		r.pause.mu.Lock()
		reads := 0
		for key, n := range r.pause.reads {
			if strings.HasPrefix(key, w.keys.Of(store.KindTokens)) {
				reads += n
			}
		}
		r.pause.mu.Unlock()
		if reads > 25 {
			t.Errorf("%d tokens were read from etcd, want about 20", reads)
		}
		if e := r.entries(); len(e) != 2 || e[1].What != fmt.Sprintf("join refused: %d more", tries-1) {
			t.Errorf("the journal has %+v, want one refusal and a sum", e)
		}
		// A valid token is accepted meanwhile, also one that this replica has not seen yet.
		r.store.Faults().StallWatches()
		if _, err := r.joins(nil, m.asks(w.token("web-0", time.Hour))); err != nil {
			t.Errorf("a good token: %v", err)
		}
	})
}

// proves SEC-2
func TestAuthorityThatCannotIssueCostsNobodyHisToken(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Booting)
		req := newMachine(w.t, "web-0").asks(w.token("web-0", time.Hour))
		w.ca.setBroken(true)
		if _, err := r.joins(nil, req); status.Code(err) != codes.Unavailable {
			t.Errorf("the answer is %v", err)
		}
		w.ca.setBroken(false)
		if _, err := r.joins(nil, req); err != nil {
			t.Errorf("when it can again: %v", err)
		}
	})
}

// onlyToken returns the one token that there is.
func (w *world) onlyToken() store.KV {
	w.t.Helper()
	l, err := w.store.List(context.Background(), w.keys.Of(store.KindTokens), 0)
	if err != nil || len(l.KVs) != 1 {
		w.t.Fatalf("tokens %+v, %v", l.KVs, err)
	}
	return l.KVs[0]
}
