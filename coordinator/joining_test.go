package coordinator_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// secured has a replica secure its streams, with an authority that all of a test's replicas share.
func (w *world) secured() func(*coordinator.Config, *coordinator.Deps) {
	w.t.Helper()
	return w.securedFor(pki.AgentsLifetime)
}

// securedFor is secured, with an authority that ends.
func (w *world) securedFor(lifetime time.Duration) func(*coordinator.Config, *coordinator.Deps) {
	w.t.Helper()
	dir := filepath.Join(w.t.TempDir(), "pki")
	if err := pki.Init(dir, map[pki.Kind]time.Duration{pki.Agents: lifetime}); err != nil {
		w.t.Fatal(err)
	}
	a, err := pki.Open(dir, w.log)
	if err != nil {
		w.t.Fatal(err)
	}
	return func(_ *coordinator.Config, deps *coordinator.Deps) { deps.Authority = a }
}

// agentCert is what a machine has on its disk to show who it is.
type agentCert struct {
	key  *ecdsa.PrivateKey
	pair *tls.Certificate
}

// credentials are those with which the agent opens a stream: it joins first if it has to. Nil: not
// now.
func (a *agent) credentials(ctx context.Context, address string) credentials.TransportCredentials {
	b := a.boot.Bootstrap
	if b.JoinToken == "" {
		return insecure.NewCredentials()
	}
	trust, err := identity.TrustOfPEM([]byte(b.CA), "")
	if err != nil {
		a.w.t.Errorf("bootstrap document of %s: %v", b.Instance, err)
		return nil
	}
	p := a.agentCert()
	if p.pair == nil && !a.join(ctx, address, p, trust) {
		return nil
	}
	return credentials.NewTLS(identity.ClientConfig(b.Shard, p.pair, trust))
}

// agentCert is the machine's, with a key that is made when it is asked for first. One goroutine at a
// time is the machine.
func (k *work) agentCert() *agentCert {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.papers.key == nil {
		key, err := identity.NewKey()
		if err != nil {
			k.w.t.Error(err)
		}
		k.papers.key = key
	}
	return &k.papers
}

// join exchanges the token of the machine's bootstrap document.
func (a *agent) join(ctx context.Context, address string, p *agentCert, trust identity.Trust) bool {
	b := a.boot.Bootstrap
	request, err := identity.NewRequest(p.key)
	if err != nil {
		a.w.t.Error(err)
		return false
	}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithContextDialer(a.w.net.dial),
		grpc.WithTransportCredentials(credentials.NewTLS(identity.ClientConfig(b.Shard, nil, trust))),
		grpc.WithAuthority(identity.Host(b.Shard, identity.Coordinator)))
	if err != nil {
		a.w.t.Error(err)
		return false
	}
	defer conn.Close()
	c, err := protocol.NewGatewayClient(conn).Join(ctx,
		&protocol.JoinRequest{Protocol: 1, Shard: b.Shard, Instance: b.Instance, Token: b.JoinToken, Request: request})
	if err != nil {
		return false
	}
	p.pair = &tls.Certificate{Certificate: c.GetChain(), PrivateKey: p.key}
	return true
}

// Each creation has a token of its own, of which etcd knows the hash alone, and which lasts for as
// long as its machine may be waited for, an outage of an hour included. What was joined goes with
// the instance's record.
//
// proves SEC-2
func TestMachinesAreMadeWithTokens(t *testing.T) {
	inWorld(t, fake.Config{Boot: time.Second, Consistency: time.Second}, func(w *world) {
		w.setEveryone(mood{mute: true})
		w.start("one", w.secured())
		w.leads(time.Second, "one")
		g := w.group("web", 2)
		w.apply(g)
		w.until(time.Minute, "the machines are made", func() bool { return len(w.provider.Existing()) == 2 })
		tokens := w.list(w.keys.Of(store.KindTokens))
		if len(tokens) != 2 {
			t.Fatalf("there are %d tokens, want one for each call", len(tokens))
		}
		for _, kv := range tokens {
			v, err := store.Decode[store.JoinToken](kv)
			if err != nil {
				t.Fatal(err)
			}
			lease, err := w.store.Renew(w.t.Context(), kv.Lease)
			if least := g.RegistrationTimeout.D() + time.Hour; err != nil || lease.TTL < least ||
				lease.TTL > least+2*time.Hour {
				t.Errorf("the token of %s is on a lease of %s (%v), want some more than %s", v.Record.Instance,
					lease.TTL, err, least)
			}
		}
		w.setEveryone(mood{})
		w.until(time.Minute, "they are healthy", func() bool { return w.settled(2) })
		if n := len(w.list(w.keys.Of(store.KindTokens))); n != 0 {
			t.Errorf("%d tokens are left", n)
		}
		if n := len(w.list(w.keys.Of(store.KindJoined))); n != 2 {
			t.Errorf("%d have joined", n)
		}
		for _, id := range w.ids() {
			for _, kind := range []string{store.KindInstances, store.KindEvents, store.KindJoined} {
				for _, kv := range w.list(w.keys.Of(kind)) {
					if secret := w.work(id).document.JoinToken; secret == "" ||
						bytes.Contains(kv.Value, []byte(secret)) {
						t.Errorf("%s has the token %q of %s", kv.Key, secret, id)
					}
				}
			}
		}
		w.deleteGroup(g)
	})
}

// A machine that was made before an outage of an hour joins after it.
//
// proves SEC-2, SAFE-5
func TestTokensOutlastAnOutage(t *testing.T) {
	inWorld(t, fake.Config{Boot: 10 * time.Second, Consistency: time.Second}, func(w *world) {
		secured := w.secured()
		one := w.start("one", secured)
		w.leads(time.Second, "one")
		w.apply(w.group("web", 1))
		w.until(5*time.Second, "the machine is made", func() bool { return len(w.provider.Existing()) == 1 })
		made := w.provider.Existing()
		one.stop()
		w.pass(time.Hour)
		w.start("one", secured)
		w.until(2*time.Minute, "it is healthy", func() bool { return w.settled(1) })
		if now := w.provider.Existing(); len(now) != 1 || now[0] != made[0] {
			t.Errorf("machines %v, want %v", now, made)
		}
	})
}

// A call that cannot be recorded leaves no token behind, and one that can is not held up by it.
//
// proves SEC-2
func TestTokenGoesWhereItsCallIsNotRecorded(t *testing.T) {
	inWorld(t, fake.Config{Boot: time.Second, Consistency: time.Second}, func(w *world) {
		w.setEveryone(mood{mute: true})
		lost := false
		var r *replica
		r = w.start("one", w.secured(), before(func(boundary, _ string) {
			if boundary == "record creating" && !lost {
				lost = true
				r.store.Faults().LoseAnswer()
			}
		}))
		w.leads(time.Second, "one")
		w.apply(w.group("web", 1))
		w.until(time.Minute, "the machine is made", func() bool { return len(w.provider.Existing()) == 1 })
		if n := len(w.list(w.keys.Of(store.KindTokens))); n != 1 || !lost {
			t.Errorf("%d tokens, want that of the call which was made", n)
		}
	})
}

// Somebody who finds a token that was used, or the certificate of a machine that is gone, gets
// nowhere.
//
// proves SEC-2
func TestUsedTokenOfAMachineThatIsGoneIsRefused(t *testing.T) {
	inWorld(t, fake.Config{Boot: time.Second, Consistency: time.Second}, func(w *world) {
		w.start("one", w.secured())
		w.leads(time.Second, "one")
		g := w.group("web", 1)
		w.apply(g)
		ids := w.up(1)
		k := w.work(ids[0])
		w.deleteGroup(g)
		trust, err := identity.TrustOfPEM([]byte(k.document.CA), "")
		if err != nil {
			t.Fatal(err)
		}
		conn, err := grpc.NewClient("passthrough:///one", grpc.WithContextDialer(w.net.dial),
			grpc.WithTransportCredentials(credentials.NewTLS(identity.ClientConfig(k.document.Shard, nil, trust))),
			grpc.WithAuthority(identity.Host(k.document.Shard, identity.Coordinator)))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		request, err := identity.NewRequest(k.agentCert().key)
		if err != nil {
			t.Fatal(err)
		}
		_, err = protocol.NewGatewayClient(conn).Join(w.t.Context(), &protocol.JoinRequest{
			Protocol: 1, Shard: k.document.Shard, Instance: ids[0], Token: k.document.JoinToken, Request: request,
		})
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("the answer is %v", err)
		}
		w.pass(time.Second)
		if n := w.told("one", "SEC-2"); n != 2 {
			t.Errorf("the journal has %d entries of SEC-2, want who joined and who did not", n)
		}
	})
}
