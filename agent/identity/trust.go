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
	"time"
)

// Trust is the set of authorities that one end of a stream trusts. It is a value, never modified
// once handed out.
type Trust struct {
	// Authorities are the trusted authorities, oldest first. During a rotation there are two.
	Authorities []*x509.Certificate
	// Issuer is the fingerprint of the authority that issues now; "" if it is not known.
	Issuer string
}

// Limits on what a peer can make this process keep.
const (
	maxAuthorities = 8
	maxChain       = 8
)

// Fingerprint returns the fingerprint of a certificate.
func Fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:16])
}

// Digest identifies the set of authorities and the issuer.
func (t Trust) Digest() string { return DigestOf(t.Prints(), t.Issuer) }

// Prints returns the fingerprints of the authorities.
func (t Trust) Prints() []string {
	prints := make([]string, 0, len(t.Authorities))
	for _, c := range t.Authorities {
		prints = append(prints, Fingerprint(c))
	}
	return prints
}

// DigestOf returns the digest of a trust from its fingerprints.
func DigestOf(prints []string, issuer string) string {
	prints = slices.Clone(prints)
	slices.Sort(prints)
	h := sha256.New()
	for _, p := range slices.Compact(prints) {
		h.Write([]byte(p + "\n"))
	}
	h.Write([]byte("issuer " + issuer))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Pool returns the authorities for the standard library.
func (t Trust) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	for _, c := range t.Authorities {
		p.AddCert(c)
	}
	return p
}

// Believes reports whether one of the trusted authorities has this fingerprint.
func (t Trust) Believes(fingerprint string) bool {
	return slices.ContainsFunc(t.Authorities, func(c *x509.Certificate) bool { return Fingerprint(c) == fingerprint })
}

// Verify checks a chain, its holder's certificate first, against the trusted authorities, for a use
// and at a time; host is a server's name, "" for others. It returns the chains from the certificate
// to an authority.
func (t Trust) Verify(chain []*x509.Certificate, use x509.ExtKeyUsage, host string,
	at time.Time,
) (ways [][]*x509.Certificate, err error) {
	if len(chain) == 0 {
		return nil, errors.New("the peer sent no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	return chain[0].Verify(x509.VerifyOptions{
		DNSName: host, Roots: t.Pool(), Intermediates: between, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{use},
	})
}

// DER returns the authorities in wire format.
func (t Trust) DER() [][]byte {
	out := make([][]byte, 0, len(t.Authorities))
	for _, c := range t.Authorities {
		out = append(out, c.Raw)
	}
	return out
}

// PEM returns the authorities as files have them.
func (t Trust) PEM() []byte {
	var b bytes.Buffer
	for _, c := range t.Authorities {
		_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}) // a buffer returns no error
	}
	return b.Bytes()
}

// TrustOf reads authorities in wire format. It refuses all of them if one is not an authority's
// certificate.
func TrustOf(authorities [][]byte, issuer string) (Trust, error) {
	t := Trust{Issuer: issuer}
	if len(authorities) == 0 {
		return t, errors.New("no certificate authority to trust")
	}
	if len(authorities) > maxAuthorities {
		return t, fmt.Errorf("%d certificate authorities: at most %d are allowed", len(authorities), maxAuthorities)
	}
	for _, der := range authorities {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return t, fmt.Errorf("certificate authority: %w", err)
		}
		if !c.IsCA || !c.BasicConstraintsValid {
			return t, fmt.Errorf("certificate of %s is not a certificate authority's", c.Subject)
		}
		t.Authorities = append(t.Authorities, c)
	}
	return t, nil
}

// ReadChain reads a certificate in wire format, with its intermediate certificates.
func ReadChain(ders [][]byte) ([]*x509.Certificate, error) {
	if len(ders) == 0 || len(ders) > maxChain {
		return nil, fmt.Errorf("a chain of %d certificates: 1 to %d are allowed", len(ders), maxChain)
	}
	chain := make([]*x509.Certificate, len(ders))
	for i, der := range ders {
		var err error
		if chain[i], err = x509.ParseCertificate(der); err != nil {
			return nil, fmt.Errorf("certificate: %w", err)
		}
	}
	return chain, nil
}

// TrustOfPEM reads authorities as files have them.
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
