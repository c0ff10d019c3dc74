package gateway_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/identity/identitytest"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// recorded checks that there is one entry in the journal, of a rule and for a reason.
func (r *replica) recorded(rule, what, why string) {
	r.w.t.Helper()
	synctest.Wait()
	e := r.entries()
	proved := what == "stream ended" || what == "renewal refused" || what == "agent cut off" // peers that were admitted
	if len(e) != 1 || e[0].Rule != rule || e[0].What != what || e[0].Why != why || e[0].Instance != "" &&
		e[0].Claimed == proved {
		r.w.t.Errorf("the journal has %+v, want that %s by %s, because %s", e, what, rule, why)
	}
}

// proves SEC-1
func TestAgentActsAsItselfAlone(t *testing.T) {
	for name, c := range map[string]struct {
		why    string
		reason protocol.Refused_Reason
		own    func(*world) *tls.Certificate
	}{
		"no certificate": {
			"it shows no certificate", protocol.Refused_CERTIFICATE,
			func(*world) *tls.Certificate { return nil },
		},
		"another instance's": {
			"the certificate is another instance's", protocol.Refused_CERTIFICATE,
			func(w *world) *tls.Certificate {
				return w.ca.agent("web-1", time.Hour)
			},
		},
		"another shard's": {
			"the certificate is of another shard", protocol.Refused_CERTIFICATE,
			func(w *world) *tls.Certificate {
				return pair(w.t, w.ca.issuer, identity.Identity{Shard: "other", Role: identity.Agent, Name: "web-0"},
					time.Now(), time.Hour)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inSecuredWorld(t, func(w *world) {
				r := w.serve("one")
				defer r.stop()
				w.record("web-0", store.Running)
				w.record("web-1", store.Running)
				r.own = w.ca.agent("web-0", time.Hour)
				h := helloTrusting(w, "web-0")
				h.Epoch = 7
				honest := r.welcomed(h)
				defer honest.hangUp()
				before := w.trust()
				r.own = c.own(w)
				r.refused(hello("web-0", "boot1", 8), c.reason)
				r.recorded("SEC-1", "stream refused", c.why)
				if after := w.trust(); after != before {
					t.Errorf("etcd has\n%sbut had\n%s", after, before)
				}
				honest.reports()
			})
		})
	}
}

// An agent that was sent to a replica of another shard with the same authority is told its mistake,
// which is also recorded.
//
// proves SEC-1
func TestAgentOfAnotherShardIsRefusedWithTheReason(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		r.own = pair(w.t, w.ca.issuer, identity.Identity{Shard: "other", Role: identity.Agent, Name: "web-0"},
			time.Now(), time.Hour)
		h := hello("web-0", "boot1", 1)
		h.Shard = "other"
		r.refused(h, protocol.Refused_WRONG_SHARD)
		r.recorded("SEC-1", "stream refused", "the certificate is of another shard")
	})
}

// proves SEC-1
func TestHandshakesThatFailAreRecorded(t *testing.T) {
	past := func(w *world, by *identitytest.Authority, from time.Duration) credentials.TransportCredentials {
		return credentials.NewTLS(identity.ClientConfig(shardID,
			pair(w.t, by, agentOf("web-0"), time.Now().Add(from), time.Hour), w.ca.Trust()))
	}
	for name, c := range map[string]struct {
		why     string
		claimed string
		secured func(*world) credentials.TransportCredentials
	}{
		"no TLS": {
			"not TLS", "",
			func(*world) credentials.TransportCredentials { return insecure.NewCredentials() },
		},
		"foreign authority": {
			"the certificate is of an unknown authority", "web-0",
			func(w *world) credentials.TransportCredentials { return past(w, identitytest.New(w.t, "first"), 0) },
		},
		"expired": {
			"the certificate has expired", "web-0",
			func(w *world) credentials.TransportCredentials { return past(w, w.ca.issuer, -2*time.Hour) },
		},
		"not yet valid": {
			"the certificate is not valid yet", "web-0",
			func(w *world) credentials.TransportCredentials { return past(w, w.ca.issuer, time.Hour) },
		},
		"a coordinator's": {
			"the certificate is not an agent's", "web-0",
			func(w *world) credentials.TransportCredentials {
				own := pair(w.t, w.ca.issuer, identity.Identity{
					Shard: shardID, Role: identity.Coordinator,
					Name: "web-0",
				},
					time.Now(), time.Hour)
				return credentials.NewTLS(identity.ClientConfig(shardID, own, w.ca.Trust()))
			},
		},
		"TLS 1.2": {"TLS older than 1.3", "", func(w *world) credentials.TransportCredentials {
			cfg := identity.ClientConfig(shardID, w.ca.agent("web-0", time.Hour), w.ca.Trust())
			cfg.MinVersion, cfg.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
			return credentials.NewTLS(cfg)
		}},
		"trust in another authority": {
			"the caller does not believe this coordinator", "",
			func(w *world) credentials.TransportCredentials {
				return credentials.NewTLS(identity.ClientConfig(shardID, nil, newTestAuthority(w.t).Trust()))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inSecuredWorld(t, func(w *world) {
				r := w.serve("one")
				defer r.stop()
				w.record("web-0", store.Running)
				raw, err := r.listen.DialContext(w.t.Context())
				if err != nil {
					t.Fatal(err)
				}
				conn, err := grpc.NewClient("passthrough:///"+identity.Host(shardID, identity.Coordinator),
					grpc.WithTransportCredentials(c.secured(w)), grpc.WithContextDialer(once(raw)))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if _, err := protocol.NewGatewayClient(conn).Join(w.t.Context(),
					&protocol.JoinRequest{Protocol: 1}); err == nil || looksRefused(err) {
					t.Errorf("the call came through: %v", err)
				}
				r.recorded("SEC-1", "connection refused", c.why)
				if e := r.entries(); len(e) == 1 && e[0].Instance != c.claimed {
					t.Errorf("the entry names %q, want %q", e[0].Instance, c.claimed)
				}
			})
		})
	}
}

// once hands out one connection: a client that was sent away does not come again by itself.
func once(conn net.Conn) func(context.Context, string) (net.Conn, error) {
	return func(context.Context, string) (net.Conn, error) {
		if conn == nil {
			return nil, errors.New("there is no other connection")
		}
		c := conn
		conn = nil
		return c, nil
	}
}

// A connection that sends nothing is no attack: it may be a load balancer's probe.
func TestConnectionsWithoutAWordAreNotRecorded(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		conn, err := r.listen.DialContext(w.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		pass(2 * time.Minute)
		if e := r.entries(); len(e) != 0 {
			t.Errorf("the journal has %+v", e)
		}
	})
}

// renews asks for another certificate and takes it.
func (a *agent) renews(instance string) *tls.Certificate {
	a.t.Helper()
	m := newMachine(a.t, instance)
	a.send(
		&protocol.AgentMessage{
			Kind: &protocol.AgentMessage_RenewCertificate{RenewCertificate: &protocol.RenewCertificate{Request: m.request}},
		},
	)
	msg := a.next()
	if msg.GetCertificate() == nil {
		a.t.Fatalf("%v came, want a certificate", msg)
	}
	return m.pair(msg.GetCertificate())
}

// proves SEC-3
func TestCertificatesAreRenewedOnTheStreamOverManyGenerations(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		const lifetime = 6 * time.Second
		w.lifetime(lifetime)
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		r.own = w.ca.agent("web-0", lifetime)
		a := r.welcomed(helloTrusting(w, "web-0"))
		defer a.hangUp()
		before := w.alive("web-0").Modified
		for range 100 {
			pass(lifetime / 3)
			r.own = a.renews("web-0")
			a.reports()
		}
		if now := w.alive("web-0").Modified; now != before || r.troubles() != 0 || len(r.entries()) != 0 {
			t.Errorf("alive was written at %d and %d, %d disturbances, the journal has %+v", before, now, r.troubles(),
				r.entries())
		}
		// What came last opens the next stream.
		h := helloTrusting(w, "web-0")
		h.Epoch = 2
		defer r.welcomed(h).hangUp()
	})
}

func helloTrusting(w *world, instance string) *protocol.Hello {
	h := hello(instance, "boot1", 1)
	h.Trust = w.ca.Trust().Digest()
	return h
}

// proves SEC-1, SEC-3
func TestStreamEndsWithItsCertificate(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		const lifetime = 12 * time.Second
		w.lifetime(lifetime)
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		r.own = w.ca.agent("web-0", lifetime)
		a := r.welcomed(helloTrusting(w, "web-0"))
		defer a.hangUp()
		pass(4 * time.Second)
		a.renews("web-0")
		began := time.Now()
		for range 2 {
			pass(interval)
			a.reports()
		}
		if m := a.next(); m.GetRefused().GetReason() != protocol.Refused_CERTIFICATE {
			t.Fatalf("the agent is told %v", m)
		}
		if lasted := time.Since(began); lasted < lifetime-time.Second || lasted > lifetime {
			t.Errorf("the stream ended %s after the renewal, want %s", lasted, lifetime)
		}
		a.ends()
		synctest.Wait() // what became of the stream is written beside it
		w.shows("web-0", "one", 1, store.StreamLost)
		r.recorded("SEC-1", "stream ended", "the certificate has ended and was not renewed")
	})
}

// proves SEC-5
func TestRenewalsOfOneAgentAreSlowedDownAndHarmNoOther(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		w.record("web-1", store.Running)
		r.own = w.ca.agent("web-0", time.Hour)
		bad := r.welcomed(helloTrusting(w, "web-0"))
		defer bad.hangUp()
		r.own = w.ca.agent("web-1", time.Hour)
		honest := r.welcomed(helloTrusting(w, "web-1"))
		defer honest.hangUp()
		request := newMachine(w.t, "web-0").request
		const many = 60
		for range many {
			bad.send(
				&protocol.AgentMessage{
					Kind: &protocol.AgentMessage_RenewCertificate{RenewCertificate: &protocol.RenewCertificate{Request: request}},
				},
			)
		}
		began := time.Now()
		honest.reports()
		if took := time.Since(began); took > 0 {
			t.Errorf("the other agent waited %s", took)
		}
		certificates := 0
		m := bad.next()
		for ; m.GetCertificate() != nil; m = bad.next() {
			certificates++
		}
		if took := time.Since(began); certificates < 30 || certificates > 40 ||
			took < time.Duration(certificates-6)*time.Second {
			t.Errorf("%d renewals took %s, want one a second and an end", certificates, took)
		}
		if m.GetRefused().GetReason() != protocol.Refused_MALFORMED {
			t.Errorf("the agent is told %v", m)
		}
		r.recorded("SEC-5", "agent cut off", "it asks for certificates without pause")
	})
}

// proves SEC-5
func TestRequestThatIsNoneEndsTheStream(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		r.own = w.ca.agent("web-0", time.Hour)
		a := r.welcomed(helloTrusting(w, "web-0"))
		defer a.hangUp()
		a.send(
			&protocol.AgentMessage{
				Kind: &protocol.AgentMessage_RenewCertificate{
					RenewCertificate: &protocol.RenewCertificate{Request: []byte("give me one")},
				},
			},
		)
		if m := a.next(); m.GetRefused().GetReason() != protocol.Refused_MALFORMED {
			t.Errorf("the agent is told %v", m)
		}
		a.ends()
		r.recorded("SEC-1", "renewal refused", "the request is malformed, or its key is not ECDSA P-256")
	})
}

// proves SEC-3
func TestAuthorityThatCannotRenewEndsNoStream(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		r.own = w.ca.agent("web-0", time.Hour)
		a := r.welcomed(helloTrusting(w, "web-0"))
		defer a.hangUp()
		w.ca.setBroken(true)
		m := newMachine(w.t, "web-0")
		a.send(
			&protocol.AgentMessage{
				Kind: &protocol.AgentMessage_RenewCertificate{RenewCertificate: &protocol.RenewCertificate{Request: m.request}},
			},
		)
		a.reports()
		w.ca.setBroken(false)
		a.renews("web-0")
	})
}

// believes takes the next message, which must name the trusted authorities.
func (a *agent) believes(want identity.Trust) {
	a.t.Helper()
	m := a.next().GetTrust()
	got, err := identity.TrustOf(m.GetAuthorities(), m.GetIssuer())
	if err != nil || got.Digest() != want.Digest() {
		a.t.Fatalf("the agent is told to believe %v (%v)", m, err)
	}
}

// proves SEC-3
func TestAuthoritiesAreExchangedUnderOpenStreams(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		w.record("web-1", store.Running)
		first, second := w.ca.issuer, identitytest.New(w.t, "second")
		r.own = w.ca.agent("web-1", time.Hour)
		sleeper := r.welcomed(helloTrusting(w, "web-1"))
		defer sleeper.hangUp()
		r.own = w.ca.agent("web-0", time.Hour)
		h := hello("web-0", "boot1", 1)
		h.Trust = "something old"
		a := r.welcomed(h)
		defer a.hangUp()
		a.believes(w.ca.Trust())
		a.reports() // it may not have applied it yet, and is not sent it with every report

		w.ca.change(first, first, second) // introduced
		a.believes(w.ca.Trust())
		sleeper.believes(w.ca.Trust())
		w.ca.change(second, first, second) // it issues
		a.believes(w.ca.Trust())
		sleeper.believes(w.ca.Trust())
		r.own = a.renews("web-0")
		trust := w.ca.Trust()
		ends := time.Now().Add(30 * 24 * time.Hour).UTC().Truncate(time.Second)
		a.report(&protocol.Report{
			Healthy: true, Trust: trust.Digest(),
			Certificate: &protocol.OwnCertificate{Issuer: trust.Issuer, Ends: timestamppb.New(ends)},
		})
		if rec := w.report("web-0").Record; rec.Trust != trust.Digest() || rec.Certificate == nil ||
			rec.Certificate.Issuer != trust.Issuer || !rec.Certificate.Ends.Equal(ends) {
			t.Errorf("what is stored of it is %q and %+v", rec.Trust, rec.Certificate)
		}

		w.ca.change(second, second) // the old authority is no longer trusted: an agent with nothing newer is cut off
		a.believes(w.ca.Trust())
		sleeper.believes(w.ca.Trust())
		if m := sleeper.next(); m.GetRefused().GetReason() != protocol.Refused_CERTIFICATE {
			t.Errorf("an agent with the old certificate is told %v", m)
		}
		sleeper.ends()
		r.recorded("SEC-1", "stream ended", "the certificate's authority is no longer believed")
		for range 5 {
			a.report(&protocol.Report{Healthy: true, Trust: w.ca.Trust().Digest()})
		}
		w.shows("web-0", "one", 1, store.StreamOpen)
		b := hello("web-0", "boot1", 2)
		b.Trust = w.ca.Trust().Digest()
		defer r.welcomed(b).hangUp()
	})
}

// An agent that does not apply the trust receives it again, once in a while.
//
// proves SEC-3
func TestAgentThatTrustsSomethingElseIsSentTheTrustAgain(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		r.own = w.ca.agent("web-0", time.Hour)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		a.believes(w.ca.Trust())
		told := 0
		for range 24 { // two minutes
			pass(interval)
			a.number++
			a.send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: &protocol.Report{
				Sequence: a.number,
				Healthy:  true, Trust: "other",
			}}})
			synctest.Wait()
			for len(a.in) > 0 {
				if m := a.next(); m.GetTrust() != nil {
					told++
				}
			}
		}
		if told < 3 || told > 5 {
			t.Errorf("it was told %d times in two minutes, want about four", told)
		}
	})
}

func TestRefusalsOfStreamsNameNoSecrets(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Booting)
		token := w.token("web-0", time.Hour)
		if _, err := r.joins(nil, newMachine(w.t, "web-0").asks(token+"x")); !looksRefused(err) {
			t.Fatal(err)
		}
		if _, err := r.joins(nil, newMachine(w.t, "web-0").asks(token)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.joins(nil, newMachine(w.t, "web-0").asks(token)); !looksRefused(err) {
			t.Fatal(err)
		}
		for _, e := range r.entries() {
			if strings.Contains(string(store.Encode(e)), token) {
				t.Errorf("the journal tells the token: %+v", e)
			}
		}
	})
}
