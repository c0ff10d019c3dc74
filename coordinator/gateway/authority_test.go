package gateway_test

import (
	"crypto/tls"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/identity/identitytest"
	"github.com/leasehold/leasehold/coordinator/claim"
	"github.com/leasehold/leasehold/store"
)

// testAuthority certifies any request, in the bubble's time.
type testAuthority struct {
	t *testing.T

	mu      sync.Mutex
	issuer  *identitytest.Authority
	trust   identity.Trust
	changed chan struct{}
	broken  bool // it can issue nothing
	seals   int
}

// pair returns a certificate and its key, for a time.
func pair(t *testing.T, by *identitytest.Authority, to identity.Identity, from time.Time,
	lifetime time.Duration,
) *tls.Certificate {
	t.Helper()
	key, err := identity.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	leaf := by.Certify(t, &key.PublicKey, to, from, from.Add(lifetime))
	return &tls.Certificate{Certificate: [][]byte{leaf, by.Cert.Raw}, PrivateKey: key}
}

func newTestAuthority(t *testing.T) *testAuthority {
	t.Helper()
	ca := identitytest.New(t, "first")
	return &testAuthority{t: t, issuer: ca, trust: identitytest.Trust(ca), changed: make(chan struct{})}
}

func (a *testAuthority) Issue(request []byte, to identity.Identity, lifetime time.Duration) ([][]byte, time.Time,
	error,
) {
	if _, err := identity.ReadRequest(request); err != nil {
		return nil, time.Time{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken {
		return nil, time.Time{}, errors.New("the key is not there")
	}
	return [][]byte{a.issuer.Issue(a.t, request, to, lifetime), a.issuer.Cert.Raw}, time.Now().Add(lifetime), nil
}

func (a *testAuthority) Seal(c store.Claim) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken {
		return nil, errors.New("the key is not there")
	}
	a.seals++
	c.Since = time.Now().UTC()
	return claim.Seal(c, a.issuer.Cert, a.issuer.Key())
}

func (a *testAuthority) sealed() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seals
}

func (a *testAuthority) Trust() identity.Trust {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.trust
}

func (a *testAuthority) Changed() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}

func (a *testAuthority) Certificate(own identity.Identity) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return pair(a.t, a.issuer, own, time.Now().Add(-time.Second), time.Hour), nil
}

func (a *testAuthority) setBroken(yes bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.broken = yes
}

// agent returns the certificate of an instance's agent.
func (a *testAuthority) agent(instance string, lifetime time.Duration) *tls.Certificate {
	return pair(a.t, a.issuer, agentOf(instance), time.Now(), lifetime)
}

func agentOf(instance string) identity.Identity {
	return identity.Identity{Shard: shardID, Role: identity.Agent, Name: instance}
}

// inSecuredWorld is inWorld with certificates.
func inSecuredWorld(t *testing.T, test func(*world)) {
	t.Helper()
	inWorld(t, func(w *world) {
		w.ca = newTestAuthority(w.t)
		test(w)
	})
}

// token gives out a join token for an instance.
func (w *world) token(instance string, ttl time.Duration) string {
	w.t.Helper()
	lease, err := w.store.Grant(w.t.Context(), ttl)
	if err != nil {
		w.t.Fatal(err)
	}
	token := store.NewToken()
	rec := store.Encode(store.JoinToken{Schema: store.Schema, Instance: instance, Issued: time.Now()})
	txn := store.Txn{Writes: []store.Write{store.PutLeased(w.keys.Token(store.TokenHash(token)), rec, lease.ID)}}
	if _, err := w.store.Commit(w.t.Context(), txn); err != nil {
		w.t.Fatal(err)
	}
	return token
}

// change exchanges the issuer and the trusted authorities.
func (a *testAuthority) change(issuer *identitytest.Authority, believed ...*identitytest.Authority) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.issuer, a.trust = issuer, identitytest.Trust(believed...)
	a.trust.Issuer = issuer.Print()
	close(a.changed)
	a.changed = make(chan struct{})
}

// lifetime sets how long agents' certificates last.
func (w *world) lifetime(d time.Duration) {
	w.t.Helper()
	settings := store.DefaultShardSettings()
	settings.Certificate = store.Duration(d)
	w.put(w.keys.Shard(), store.Encode(store.Shard{Schema: store.Schema, ID: shardID, Settings: settings}))
}
