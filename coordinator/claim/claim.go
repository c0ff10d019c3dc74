package claim

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// context precedes what is signed. A certificate begins with another byte, so nothing can be both.
const context = "leasehold claim v1\x00"

// sealed is a claim with its seal, as agents keep it.
type sealed struct {
	Claim     []byte `json:"claim"`
	Issuer    string `json:"issuer"` // fingerprint of the authority
	Signature []byte `json:"signature"`
}

// Of returns the claim of a record's instance. The sealer sets Since.
func Of(shard string, i store.Instance) store.Claim {
	slot := i.Slot
	if !i.Managed {
		slot = -1
	}
	return store.Claim{
		Schema: store.Schema, Shard: shard, Instance: i.ID, Group: i.Group, Slot: slot, Managed: i.Managed,
		Template: i.Template, Config: i.Config,
		Relaunch: i.Relaunch, Boot: i.Boot, Provider: i.Spec.Provider,
		Spot: i.Spec.Spot, Fallback: i.Fallback, Zone: i.Zone, Ref: i.Ref, Created: i.Created,
	}
}

// Same reports whether two claims have the same content, regardless of when they were sealed.
func Same(a, b store.Claim) bool {
	if !a.Created.Equal(b.Created) {
		return false
	}
	a.Created, a.Since = b.Created, b.Since
	return a == b
}

// Seal signs a claim with an authority's key. It fails if the result is more than an agent keeps.
func Seal(c store.Claim, authority *x509.Certificate, key crypto.Signer) ([]byte, error) {
	s := sealed{Claim: store.Encode(c), Issuer: identity.Fingerprint(authority)}
	algorithm, hash := algorithmOf(authority.PublicKey)
	if algorithm == x509.UnknownSignatureAlgorithm {
		return nil, fmt.Errorf("seal claim of %s: nothing is known to sign with a %T", c.Instance, authority.PublicKey)
	}
	message := signed(s.Claim)
	if hash != 0 {
		sum := sha256.Sum256(message)
		message = sum[:]
	}
	var err error
	if s.Signature, err = key.Sign(rand.Reader, message, hash); err != nil {
		return nil, fmt.Errorf("seal claim of %s: %w", c.Instance, err)
	}
	out, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("seal claim of %s: %w", c.Instance, err)
	}
	if len(out) > protocol.MaxClaim {
		return nil, fmt.Errorf("seal claim of %s: it has %d bytes, an agent keeps %d", c.Instance, len(out),
			protocol.MaxClaim)
	}
	return out, nil
}

// Open reads a sealed claim if a trusted authority has sealed it.
func Open(data []byte, trust identity.Trust) (store.Claim, error) {
	s, c, err := read(data)
	if err != nil {
		return store.Claim{}, err
	}
	at := slices.IndexFunc(trust.Authorities,
		func(a *x509.Certificate) bool { return identity.Fingerprint(a) == s.Issuer })
	if at < 0 {
		return store.Claim{}, errors.New("open claim: its authority is not believed")
	}
	authority := trust.Authorities[at]
	algorithm, _ := algorithmOf(authority.PublicKey)
	if err := authority.CheckSignature(algorithm, signed(s.Claim), s.Signature); err != nil {
		return store.Claim{}, fmt.Errorf("open claim: %w", err)
	}
	return c, nil
}

// Peek reads a claim without verifying its signature, and the fingerprint of the authority that it
// names. The result proves nothing.
func Peek(data []byte) (c store.Claim, issuer string, err error) {
	s, c, err := read(data)
	return c, s.Issuer, err
}

func read(data []byte) (sealed, store.Claim, error) {
	var s sealed
	if len(data) > protocol.MaxClaim {
		return s, store.Claim{}, errors.New("open claim: it is too long")
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, store.Claim{}, fmt.Errorf("open claim: %w", err)
	}
	c, err := store.Decode[store.Claim](store.KV{Key: "claim", Value: s.Claim})
	if err != nil {
		return s, store.Claim{}, fmt.Errorf("open claim: %w", err)
	}
	return s, c.Record, nil
}

func signed(claim []byte) []byte { return append([]byte(context), claim...) }

// algorithmOf returns the signature algorithm of an authority's key.
func algorithmOf(key crypto.PublicKey) (x509.SignatureAlgorithm, crypto.Hash) {
	switch key.(type) {
	case *ecdsa.PublicKey:
		return x509.ECDSAWithSHA256, crypto.SHA256
	case *rsa.PublicKey:
		return x509.SHA256WithRSA, crypto.SHA256
	case ed25519.PublicKey:
		return x509.PureEd25519, 0
	default:
		return x509.UnknownSignatureAlgorithm, 0
	}
}
