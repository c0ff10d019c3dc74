package identity

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
)

// Trust is whom one side of a stream believes. It is a value: nobody changes one that was handed out.
type Trust struct {
	// Authorities are all whose certificates are believed, oldest first. While authorities are exchanged there are two.
	Authorities []*x509.Certificate
	// Issuer is the fingerprint of the one that issues now; "" where that is not known.
	Issuer string
}

// mostAuthorities bounds what a peer can have us keep.
const mostAuthorities = 8

// Fingerprint names a certificate.
func Fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:16])
}

// Digest is the same for the same set of authorities and the same issuer, and for no other.
func (t Trust) Digest() string {
	var prints []string
	for _, c := range t.Authorities {
		prints = append(prints, Fingerprint(c))
	}
	slices.Sort(prints)
	h := sha256.New()
	for _, p := range slices.Compact(prints) {
		h.Write([]byte(p + "\n"))
	}
	h.Write([]byte("issuer " + t.Issuer))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Pool is for the standard library.
func (t Trust) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	for _, c := range t.Authorities {
		p.AddCert(c)
	}
	return p
}

// Believes says whether one of the authorities has this fingerprint.
func (t Trust) Believes(fingerprint string) bool {
	return slices.ContainsFunc(t.Authorities, func(c *x509.Certificate) bool { return Fingerprint(c) == fingerprint })
}

// DER is the authorities as they travel.
func (t Trust) DER() [][]byte {
	out := make([][]byte, 0, len(t.Authorities))
	for _, c := range t.Authorities {
		out = append(out, c.Raw)
	}
	return out
}

// PEM is the authorities as they stand in files.
func (t Trust) PEM() []byte {
	var b bytes.Buffer
	for _, c := range t.Authorities {
		_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}) // a buffer takes everything
	}
	return b.Bytes()
}

// TrustOf reads authorities as they travel. Whatever is no authority's certificate spoils them all: half a trust is none.
func TrustOf(authorities [][]byte, issuer string) (Trust, error) {
	t := Trust{Issuer: issuer}
	if len(authorities) == 0 {
		return t, errors.New("no certificate authority to believe")
	}
	if len(authorities) > mostAuthorities {
		return t, fmt.Errorf("%d certificate authorities, at most %d can be", len(authorities), mostAuthorities)
	}
	for _, der := range authorities {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return t, fmt.Errorf("certificate authority: %w", err)
		}
		if !c.IsCA || !c.BasicConstraintsValid {
			return t, fmt.Errorf("certificate of %s is no certificate authority's", c.Subject)
		}
		t.Authorities = append(t.Authorities, c)
	}
	return t, nil
}

// TrustOfPEM reads authorities as they stand in files.
func TrustOfPEM(text []byte, issuer string) (Trust, error) {
	var all [][]byte
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return TrustOf(all, issuer)
		}
		if block.Type == "CERTIFICATE" {
			all = append(all, block.Bytes)
		}
		text = rest
	}
}
