package claim_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/claim"
	"github.com/leasehold/leasehold/store"
)

func authority(t *testing.T, key crypto.Signer) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "agents"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(-time.Minute),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func keys(t *testing.T) map[string]crypto.Signer {
	t.Helper()
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]crypto.Signer{"ECDSA": ec, "Ed25519": ed, "RSA": rs}
}

func web() store.Claim {
	c := claim.Of("51a4d", store.Instance{
		ID: "web-3-x", Group: "web", Slot: 3, Managed: true, Template: "t1", Config: "c1", Relaunch: 2, Boot: "b1",
		Spec: store.InstanceSpec{Provider: "mem"}, Zone: "z", Ref: "i-1", Created: time.Now().UTC(),
	})
	c.Since = time.Now().UTC()
	return c
}

// A seal holds for as long as its authority is believed, also after that has ended, and for exactly
// what was sealed.
//
// proves SAFE-17
func TestSealHolds(t *testing.T) {
	for name, key := range keys(t) {
		t.Run(name, func(t *testing.T) {
			ca := authority(t, key)
			c := web()
			sealed, err := claim.Seal(c, ca, key)
			if err != nil {
				t.Fatal(err)
			}
			trust := identity.Trust{Authorities: []*x509.Certificate{authority(t, keys(t)[name]), ca}}
			got, err := claim.Open(sealed, trust)
			if err != nil || !claim.Same(got, c) || !got.Since.Equal(c.Since) {
				t.Errorf("opened %+v, %v", got, err)
			}
			if _, issuer, err := claim.Peek(sealed); issuer != identity.Fingerprint(ca) || err != nil {
				t.Errorf("peeked at %s, %v", issuer, err)
			}
			trust.Authorities = trust.Authorities[:1]
			if _, err := claim.Open(sealed, trust); err == nil || !strings.Contains(err.Error(), "not believed") {
				t.Errorf("without its authority: %v", err)
			}
		})
	}
}

// proves SAFE-17, SEC-5
func TestWhatIsNoSealIsRefused(t *testing.T) {
	key := keys(t)["ECDSA"]
	ca := authority(t, key)
	trust := identity.Trust{Authorities: []*x509.Certificate{ca}}
	c := web()
	sealed, err := claim.Seal(c, ca, key)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sealed { // with any byte changed
		spoiled := bytes.Clone(sealed)
		spoiled[i] ^= 1
		// some bits of base64 say nothing
		if got, err := claim.Open(spoiled, trust); err == nil && !claim.Same(got, c) {
			t.Fatalf("byte %d: opened %+v", i, got)
		}
	}
	for name, data := range map[string][]byte{
		"nothing": nil, "no JSON": []byte("{"), "no names": []byte(`{}`),
		"too long": append(sealed, make([]byte, protocol.MaxClaim)...),
	} {
		if _, err := claim.Open(data, trust); err == nil {
			t.Errorf("%s was opened", name)
		}
	}
	// What the authority has signed for another purpose is no seal.
	sum := sha256.Sum256(store.Encode(c))
	bare, err := key.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	other, err := json.Marshal(map[string]any{
		"claim": store.Encode(c), "issuer": identity.Fingerprint(ca),
		"signature": bare,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claim.Open(other, trust); err == nil {
		t.Error("a signature without the context of claims was taken for a seal")
	}
	long := web()
	long.Zone = strings.Repeat("z", protocol.MaxClaim)
	if _, err := claim.Seal(long, ca, key); err == nil {
		t.Error("a claim was sealed that no agent keeps")
	}
}

// proves SAFE-17
func TestSame(t *testing.T) {
	a, b := web(), web()
	b.Created = a.Created
	b.Since = b.Since.Add(time.Hour)
	if !claim.Same(a, b) {
		t.Error("when it was sealed makes it another")
	}
	b.Slot = 4
	if claim.Same(a, b) {
		t.Error("another slot is the same")
	}
	if c := claim.Of("s", store.Instance{Slot: 2}); c.Slot != -1 {
		t.Errorf("on demand: slot %d", c.Slot)
	}
}
