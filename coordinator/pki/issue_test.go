package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/agent/identity"
	_ "github.com/leasehold/leasehold/tests/tier" // properties draw from one seed every day
)

func TestIssueCertifiesTheKeyAndNothingElseOfARequest(t *testing.T) {
	a := open(t, newPlace(t, AgentsLifetime))
	key, err := identity.NewKey()
	must(t, err)
	greedy, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "root"},
		DNSNames: []string{identity.Host(shardID, identity.Coordinator)},
		URIs:     []*url.URL{identity.Identity{Shard: shardID, Role: identity.Coordinator, Name: "coord-b"}.URI()},
		ExtraExtensions: []pkix.Extension{
			// basic constraints: CA
			{Id: []int{2, 5, 29, 19}, Critical: true, Value: []byte{0x30, 0x03, 0x01, 0x01, 0xff}},
		},
	}, key)
	must(t, err)
	chain, _, err := a.Issue(greedy, web, time.Hour)
	must(t, err)
	c, err := x509.ParseCertificate(chain[0])
	must(t, err)
	who, err := identity.Of(c)
	must(t, err)
	switch {
	case who != web:
		t.Errorf("names %s, want %s", who, web)
	case c.IsCA || c.KeyUsage != x509.KeyUsageDigitalSignature:
		t.Errorf("may sign others: CA %t, key usage %b", c.IsCA, c.KeyUsage)
	case !slices.Equal(c.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}):
		t.Errorf("an agent's certificate is for %v", c.ExtKeyUsage)
	case len(c.DNSNames)+len(c.IPAddresses)+len(c.EmailAddresses) > 0 || c.Subject.String() != "":
		t.Errorf("names more than it should: %v %q", c.DNSNames, c.Subject)
	case !key.PublicKey.Equal(c.PublicKey):
		t.Error("certifies another key")
	case !bytes.Equal(chain[1], a.Trust().Authorities[0].Raw):
		t.Error("the issuer does not follow the certificate")
	}
}

func TestIssueRefuses(t *testing.T) {
	a := open(t, newPlace(t, AgentsLifetime))
	key, err := identity.NewKey()
	must(t, err)
	request, err := identity.NewRequest(key)
	must(t, err)
	large, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must(t, err)
	otherCurve, err := identity.NewRequest(large)
	must(t, err)
	forged := slices.Clone(request)
	forged[len(forged)-1] ^= 1
	for name, c := range map[string]struct {
		request  []byte
		to       identity.Identity
		lifetime time.Duration
	}{
		"a key that is not P-256":       {otherCurve, web, time.Hour},
		"a request that another signed": {forged, web, time.Hour},
		"no request":                    {nil, web, time.Hour},
		"a coordinator's identity":      {request, replica, time.Hour},
		"no name": {
			request,
			identity.Identity{Shard: shardID, Role: identity.Agent},
			time.Hour,
		},
		"a name that is a path": {
			request,
			identity.Identity{Shard: shardID, Role: identity.Agent, Name: "a/b"},
			time.Hour,
		},
		"a role that there is not": {
			request,
			identity.Identity{Shard: shardID, Role: "operator", Name: "a"},
			time.Hour,
		},
		"a certificate that ended already": {request, web, 0},
	} {
		if chain, _, err := a.Issue(c.request, c.to, c.lifetime); err == nil || chain != nil {
			t.Errorf("%s: got a certificate (%v)", name, err)
		}
	}
}

// For any order: the certificate never outlives the authority, has begun, and lasts no longer than
// ordered.
func TestNoCertificateOutlivesItsIssuer(t *testing.T) {
	s, err := newSigner(Agents, 24*time.Hour)
	must(t, err)
	above, err := newSigner(Agents, 12*time.Hour)
	must(t, err)
	key, err := identity.NewKey()
	must(t, err)
	request, err := identity.NewRequest(key)
	must(t, err)
	rapid.Check(t, func(r *rapid.T) {
		s := s
		if rapid.Bool().Draw(r, "signed by one that ends sooner") {
			s.Above = []*x509.Certificate{above.Certificate}
		}
		lifetime := time.Duration(rapid.Int64Range(1, int64(48*time.Hour)).Draw(r, "lifetime"))
		before := time.Now()
		chain, ends, err := s.Issue(request, web, lifetime)
		if err != nil {
			r.Fatal(err)
		}
		c, err := x509.ParseCertificate(chain[0])
		if err != nil {
			r.Fatal(err)
		}
		switch {
		case !c.NotAfter.Equal(ends), ends.After(s.Ends()), ends.After(s.Certificate.NotAfter):
			r.Fatalf("ends %s (said: %s), its issuer %s", c.NotAfter, ends, s.Ends())
		case ends.After(time.Now().Add(lifetime)):
			r.Fatalf("ends %s, asked for %s", ends, lifetime)
		case c.NotBefore.After(before), c.NotBefore.Before(s.Certificate.NotBefore):
			r.Fatalf("begins %s, it is %s", c.NotBefore, before)
		}
	})
}

// proves SEC-1: of the two ends of a stream each believes only who has the role, the shard's name
// and the time for it.
func TestHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := newPlace(t, AgentsLifetime)
		a := open(t, dir)
		ours, foreign := load(t, dir, Agents).Issuer, load(t, newPlace(t, AgentsLifetime), Agents).Issuer
		operators := load(t, dir, Operators).Issuer
		ended := agentCertificate(t, ours, web, 10*time.Second)
		<-time.After(10*time.Second + clocks)
		stranger := identity.Identity{Shard: "0123", Role: identity.Agent, Name: "web-1-a7"}
		us, others, theirs := a.Trust(), Files{Issuer: foreign}.Trust(), Files{Issuer: operators}.Trust()
		for name, c := range map[string]struct {
			shard string
			own   *tls.Certificate
			trust identity.Trust
			good  bool
		}{
			"an agent":                 {shardID, agentCertificate(t, ours, web, time.Hour), us, true},
			"one that has yet to join": {shardID, nil, us, true},
			// the gateway looks at the name
			"an agent of another shard":      {shardID, agentCertificate(t, ours, stranger, time.Hour), us, true},
			"of another authority":           {shardID, agentCertificate(t, foreign, web, time.Hour), us, false},
			"of the operators' authority":    {shardID, agentCertificate(t, operators, web, time.Hour), us, false},
			"a coordinator as a client":      {shardID, agentCertificate(t, ours, replica, time.Hour), us, false},
			"ended":                          {shardID, ended, us, false},
			"not begun":                      {shardID, tomorrow(t, ours), us, false},
			"believes another authority":     {shardID, agentCertificate(t, ours, web, time.Hour), others, false},
			"believes the operators'":        {shardID, agentCertificate(t, ours, web, time.Hour), theirs, false},
			"looks for another shard":        {"0123", agentCertificate(t, ours, web, time.Hour), us, false},
			"has yet to join another's":      {"0123", nil, us, false},
			"has yet to join and is deluded": {shardID, nil, others, false},
		} {
			seen, serverErr, clientErr := meet(t, serves(t, a), identity.ClientConfig(c.shard, c.own, c.trust))
			if good := serverErr == nil && clientErr == nil; good != c.good {
				t.Errorf("%s: server %v, client %v, want good %t", name, serverErr, clientErr, c.good)
			}
			if !c.good || c.own == nil {
				continue
			}
			want, err := identity.Of(c.own.Leaf)
			must(t, err)
			if who, err := identity.Of(seen.PeerCertificates[0]); err != nil || who != want ||
				len(seen.VerifiedChains) == 0 {
				t.Errorf("%s: the server saw %s, %v, want %s", name, who, err, want)
			}
		}
		old := identity.ClientConfig(shardID, agentCertificate(t, ours, web, time.Hour), us)
		old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
		if _, serverErr, clientErr := meet(t, serves(t, a), old); serverErr == nil || clientErr == nil {
			t.Error("TLS 1.2 was good enough")
		}
	})
}

// tomorrow returns an agent's certificate that begins in an hour.
func tomorrow(t *testing.T, s Signer) *tls.Certificate {
	t.Helper()
	key, err := identity.NewKey()
	must(t, err)
	now := time.Now()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		URIs: []*url.URL{web.URI()}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		KeyUsage:  x509.KeyUsageDigitalSignature,
		NotBefore: now.Add(time.Hour), NotAfter: now.Add(2 * time.Hour),
	}, s.Certificate, &key.PublicKey, s.Key)
	must(t, err)
	leaf, err := x509.ParseCertificate(der)
	must(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// A certificate issued now is valid for peers whose clock is less than a day behind, and not for
// others: also where the authority has only just been made.
//
// proves SAFE-13
func TestClocksMayDifferALittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := newSigner(Agents, AgentsLifetime)
		must(t, err)
		c := agentCertificate(t, s, web, time.Hour).Leaf
		for behind, good := range map[time.Duration]bool{
			0: true, clocks - time.Second: true,
			clocks + time.Second: false,
		} {
			_, err := c.Verify(x509.VerifyOptions{
				Roots: Files{Issuer: s}.Trust().Pool(), CurrentTime: time.Now().Add(-behind),
				KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
			})
			if (err == nil) != good {
				t.Errorf("with a clock %s behind: %v, want good %t", behind, err, good)
			}
		}
	})
}
