// Package identitytest is a certificate authority in memory, for tests of both ends of a stream. It
// signs anything, including what a real authority would refuse.
package identitytest

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/url"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
)

// Authority signs certificates.
type Authority struct {
	Cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes an authority that lasts for a year.
func New(t testing.TB, name string) *Authority {
	t.Helper()
	key, err := identity.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.AddDate(1, 0, 0),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	return &Authority{Cert: parsed(t, template, template, &key.PublicKey, key), key: key}
}

// Key returns the key with which it signs.
func (a *Authority) Key() *ecdsa.PrivateKey { return a.key }

// Print returns its fingerprint.
func (a *Authority) Print() string { return identity.Fingerprint(a.Cert) }

// Certify signs a certificate over the key, for the use that the role has.
func (a *Authority) Certify(t testing.TB, key *ecdsa.PublicKey, to identity.Identity, from, until time.Time) []byte {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: to.Name}, NotBefore: from, NotAfter: until,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature, URIs: []*url.URL{to.URI()},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if to.Role == identity.Coordinator {
		template.DNSNames, template.ExtKeyUsage = []string{to.Host()}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	return parsed(t, template, a.Cert, key, a.key).Raw
}

// Issue answers a request as a coordinator does.
func (a *Authority) Issue(t testing.TB, request []byte, to identity.Identity, lifetime time.Duration) []byte {
	t.Helper()
	key, err := identity.ReadRequest(request)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	return a.Certify(t, key, to, now, now.Add(lifetime))
}

// Own returns a key and its certificate, valid for the given time from an hour ago on.
func (a *Authority) Own(t testing.TB, who identity.Identity, lifetime time.Duration) *tls.Certificate {
	t.Helper()
	key, err := identity.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	return &tls.Certificate{
		Certificate: [][]byte{a.Certify(t, &key.PublicKey, who, now.Add(-time.Hour), now.Add(lifetime))},
		PrivateKey:  key,
	}
}

// Trust trusts these authorities; the last one issues.
func Trust(all ...*Authority) identity.Trust {
	var t identity.Trust
	for _, a := range all {
		t.Authorities = append(t.Authorities, a.Cert)
		t.Issuer = a.Print()
	}
	return t
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		t.Fatal(err)
	}
	return n.Add(n, big.NewInt(1))
}

func parsed(t testing.TB, template, parent *x509.Certificate, key *ecdsa.PublicKey,
	by *ecdsa.PrivateKey,
) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, by)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
