package certificate

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
)

const (
	fileName = "passport.json"
	schema   = 1
)

// papers is the content of the file. It is a value: its parts are never modified.
type papers struct {
	key    *ecdsa.PrivateKey // nil: this machine has not joined
	chain  []*x509.Certificate
	issuer string    // fingerprint of the authority that signed the leaf
	issued time.Time // by the coordinators' time
	here   time.Time // the same by this machine's clock; zero: an earlier release did not keep it
	trust  identity.Trust
	asked  *ecdsa.PrivateKey // key of an unanswered request; nil: none
}

// leaf returns the machine's own certificate, nil if it has none.
func (p papers) leaf() *x509.Certificate {
	if p.key == nil {
		return nil
	}
	return p.chain[0]
}

// begun returns when the certificate was issued. It is valid a little earlier, for peers with a
// slow clock.
func (p papers) begun() time.Time {
	if !p.issued.IsZero() {
		return p.issued
	}
	return p.leaf().NotBefore
}

// pair returns what a handshake presents; nil: nothing.
func (p papers) pair() *tls.Certificate {
	if p.key == nil {
		return nil
	}
	c := &tls.Certificate{PrivateKey: p.key, Leaf: p.chain[0]}
	for _, one := range p.chain {
		c.Certificate = append(c.Certificate, one.Raw)
	}
	return c
}

// written is the file's format. Keys and certificates are PEM, so that openssl can show them.
type written struct {
	Schema      int    `json:"schema"`
	Shard       string `json:"shard"`
	Instance    string `json:"instance"`
	Key         string `json:"key,omitempty"`
	Certificate string `json:"certificate,omitempty"` // with the intermediate certificates
	Issuer      string `json:"issuer,omitempty"`
	Issued      string `json:"issued,omitempty"` // by the coordinators' time
	Here        string `json:"here,omitempty"`   // the same by this machine's clock
	Trust       string `json:"trust"`
	TrustIssuer string `json:"trust_issuer,omitempty"`
	Asked       string `json:"asked,omitempty"` // key of an unanswered request
}

// encode returns papers in the file's format.
func encode(p papers, shard, instance string) ([]byte, error) {
	w := written{
		Schema: schema, Shard: shard, Instance: instance, Issuer: p.issuer, Trust: string(p.trust.PEM()),
		TrustIssuer: p.trust.Issuer,
		Certificate: string(identity.Trust{Authorities: p.chain}.PEM()),
	}
	if !p.issued.IsZero() {
		w.Issued = p.issued.UTC().Format(time.RFC3339Nano)
	}
	if !p.here.IsZero() {
		w.Here = p.here.UTC().Format(time.RFC3339Nano)
	}
	var err error
	if w.Key, err = keyText(p.key); err != nil {
		return nil, err
	}
	if w.Asked, err = keyText(p.asked); err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(w, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write certificate: %w", err)
	}
	return append(data, '\n'), nil
}

// decode reads papers, which must be complete and belong to this instance.
func decode(data []byte, shard, instance string) (papers, error) {
	var w written
	if err := json.Unmarshal(data, &w); err != nil {
		return papers{}, fmt.Errorf("it cannot be read: %w", err)
	}
	switch {
	case w.Schema != schema:
		return papers{}, fmt.Errorf("it has schema %d, this agent's is %d", w.Schema, schema)
	case w.Shard != shard || w.Instance != instance:
		return papers{}, fmt.Errorf("it is of instance %s in shard %s", w.Instance, w.Shard)
	}
	p := papers{issuer: w.Issuer}
	var err error
	if w.Issued != "" {
		if p.issued, err = time.Parse(time.RFC3339Nano, w.Issued); err != nil {
			return papers{}, fmt.Errorf("issued: %w", err)
		}
	}
	p.here, _ = time.Parse(time.RFC3339Nano, w.Here) // without it the first coordinator is believed
	if p.trust, err = identity.TrustOfPEM([]byte(w.Trust), w.TrustIssuer); err != nil {
		return papers{}, fmt.Errorf("trust: %w", err)
	}
	if p.asked, err = keyOf(w.Asked); err != nil {
		return papers{}, err
	}
	if p.key, err = keyOf(w.Key); err != nil || p.key == nil {
		return p, err
	}
	var chain [][]byte
	for block, rest := pem.Decode([]byte(w.Certificate)); block != nil; block, rest = pem.Decode(rest) {
		chain = append(chain, block.Bytes)
	}
	if p.chain, err = identity.ReadChain(chain); err != nil {
		return papers{}, err
	}
	if !p.key.PublicKey.Equal(p.leaf().PublicKey) {
		return papers{}, errors.New("its certificate does not belong to its key")
	}
	return p, namesUs(p.leaf(), shard, instance)
}

func keyText(key *ecdsa.PrivateKey) (string, error) {
	if key == nil {
		return "", nil
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", fmt.Errorf("write key: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), nil
}

func keyOf(text string) (*ecdsa.PrivateKey, error) {
	if text == "" {
		return nil, nil
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("key: it is not PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("key: it cannot be read") // the parser quotes its input, which must not reach the log
	}
	own, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("key: it is not ECDSA")
	}
	return own, nil
}
