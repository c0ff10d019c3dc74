package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"
)

// authority makes a certificate that signs itself.
func authority(t *testing.T, isCA bool) *x509.Certificate {
	t.Helper()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: isCA,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestDigestSaysWhoIsBelievedAndWhoIssues(t *testing.T) {
	a, b, c := authority(t, true), authority(t, true), authority(t, true)
	of := func(issuer *x509.Certificate, all ...*x509.Certificate) string {
		return Trust{Authorities: all, Issuer: Fingerprint(issuer)}.Digest()
	}
	for name, same := range map[string][2]string{
		"the order matters not":   {of(a, a, b), of(a, b, a)},
		"nor that one is doubled": {of(a, a, b), of(a, a, b, b)},
	} {
		if same[0] != same[1] {
			t.Errorf("%s: %v", name, same)
		}
	}
	all := []string{
		of(a, a), of(a, a, b), of(b, a, b), of(b, b), of(a, a, c), of(a, a, b, c),
		Trust{Authorities: []*x509.Certificate{a}}.Digest(), Trust{}.Digest(),
	}
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); n != len(all) {
		t.Errorf("%d different trusts have %d digests", len(all), n)
	}
}

func TestTrustTravels(t *testing.T) {
	a, b := authority(t, true), authority(t, true)
	was := Trust{Authorities: []*x509.Certificate{a, b}, Issuer: Fingerprint(b)}
	wire, err := TrustOf(was.DER(), was.Issuer)
	if err != nil || wire.Digest() != was.Digest() {
		t.Errorf("on the wire: %v", err)
	}
	file, err := TrustOfPEM(append([]byte("a remark\n"), was.PEM()...), was.Issuer)
	if err != nil || file.Digest() != was.Digest() {
		t.Errorf("in a file: %v", err)
	}
	if !wire.Believes(Fingerprint(a)) || wire.Believes(Fingerprint(authority(t, true))) {
		t.Error("believes others than it was told to")
	}
}

func TestHalfATrustIsNone(t *testing.T) {
	good := authority(t, true).Raw
	for name, c := range map[string]struct {
		authorities [][]byte
		good        bool
	}{
		"one":                      {[][]byte{good}, true},
		"as many as can be":        {slices.Repeat([][]byte{good}, maxAuthorities), true},
		"one more":                 {slices.Repeat([][]byte{good}, maxAuthorities+1), false},
		"none":                     {nil, false},
		"one that is no authority": {[][]byte{good, authority(t, false).Raw}, false},
		"one that is cut off":      {[][]byte{good, good[:len(good)-1]}, false},
		"one with more behind it":  {[][]byte{append(slices.Clone(good), 0)}, false},
		"one that is nothing":      {[][]byte{good, nil}, false},
	} {
		if got, err := TrustOf(c.authorities, ""); (err == nil) != c.good || c.good &&
			len(got.Authorities) != len(c.authorities) {
			t.Errorf("%s: %d authorities, %v", name, len(got.Authorities), err)
		}
	}
	if _, err := TrustOfPEM([]byte("no PEM at all"), ""); err == nil {
		t.Error("a file without certificates gave a trust")
	}
}

func TestRequests(t *testing.T) {
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	request := func(signer any) []byte {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, signer)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	good, err := NewRequest(key)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadRequest(good)
	if err != nil || !got.Equal(&key.PublicKey) {
		t.Fatalf("%v, %v", got, err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	forged := slices.Clone(good)
	forged[len(forged)-1] ^= 1
	for name, c := range map[string]struct {
		der  []byte
		want string
	}{
		"P-384":         {request(p384), "not ECDSA P-256"},
		"RSA":           {request(rsaKey), "not ECDSA P-256"},
		"forged":        {forged, "not signed by its key"},
		"empty":         {nil, "read certificate request"},
		"too long":      {make([]byte, maxRequest+1), "at most"},
		"more behind":   {append(slices.Clone(good), 0), "read certificate request"},
		"a certificate": {authority(t, true).Raw, "read certificate request"},
	} {
		if key, err := ReadRequest(c.der); err == nil || key != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	other, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	mine, err := KeyPrint(&key.PublicKey)
	theirs, otherErr := KeyPrint(&other.PublicKey)
	if err != nil || otherErr != nil || mine == theirs || len(mine) != 32 {
		t.Errorf("prints %s and %s: %v, %v", mine, theirs, err, otherErr)
	}
}

// Any input gives an error or a P-256 key, and never a panic.
func FuzzReadRequest(f *testing.F) {
	key, err := NewKey()
	if err != nil {
		f.Fatal(err)
	}
	good, err := NewRequest(key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte{0x30, 0x80})
	f.Fuzz(func(t *testing.T, der []byte) {
		key, err := ReadRequest(der)
		if (err == nil) != (key != nil) || key != nil && key.Curve != elliptic.P256() {
			t.Fatalf("%v, %v", key, err)
		}
	})
}
