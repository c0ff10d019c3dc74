package gateway_test

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/store"
)

// testAuthority certifies whatever it is asked to, in the bubble's time.
type testAuthority struct {
	t *testing.T

	mu      sync.Mutex
	issuer  signer
	trust   []*x509.Certificate
	changed chan struct{}
	broken  bool // it can issue nothing
}

type signer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newSigner(t *testing.T, name string) signer {
	t.Helper()
	key, err := identity.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(10000 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return signer{cert, key}
}

// sign certifies a key from a time on, for a time.
func (s signer) sign(key *ecdsa.PublicKey, to identity.Identity, from time.Time, lifetime time.Duration) ([][]byte, error) {
	template := &x509.Certificate{
		URIs: []*url.URL{to.URI()}, NotBefore: from, NotAfter: from.Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if to.Role == identity.Coordinator {
		template.DNSNames, template.ExtKeyUsage = []string{to.Host()}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.cert, key, s.key)
	return [][]byte{der, s.cert.Raw}, err
}

// pair makes a certificate and its key.
func (s signer) pair(t *testing.T, to identity.Identity, from time.Time, lifetime time.Duration) *tls.Certificate {
	t.Helper()
	key, err := identity.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	chain, err := s.sign(&key.PublicKey, to, from, lifetime)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: chain, PrivateKey: key}
}

func newTestAuthority(t *testing.T) *testAuthority {
	t.Helper()
	s := newSigner(t, "first")
	return &testAuthority{t: t, issuer: s, trust: []*x509.Certificate{s.cert}, changed: make(chan struct{})}
}

func (a *testAuthority) Issue(request []byte, to identity.Identity, lifetime time.Duration) ([][]byte, time.Time, error) {
	key, err := identity.ReadRequest(request)
	if err != nil {
		return nil, time.Time{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken {
		return nil, time.Time{}, errors.New("the key is not there")
	}
	chain, err := a.issuer.sign(key, to, time.Now(), lifetime)
	return chain, time.Now().Add(lifetime), err
}

func (a *testAuthority) Trust() identity.Trust {
	a.mu.Lock()
	defer a.mu.Unlock()
	return identity.Trust{Authorities: slices.Clone(a.trust), Issuer: identity.Fingerprint(a.issuer.cert)}
}

func (a *testAuthority) Changed() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}

func (a *testAuthority) Certificate(own identity.Identity) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.issuer.pair(a.t, own, time.Now().Add(-time.Second), time.Hour), nil
}

func (a *testAuthority) setBroken(yes bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.broken = yes
}

// agent is the certificate of an instance's agent.
func (a *testAuthority) agent(instance string, lifetime time.Duration) *tls.Certificate {
	return a.issuer.pair(a.t, agentOf(instance), time.Now(), lifetime)
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

// change exchanges the issuer and whom to believe.
func (a *testAuthority) change(issuer signer, trust ...signer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.issuer, a.trust = issuer, nil
	for _, s := range trust {
		a.trust = append(a.trust, s.cert)
	}
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
