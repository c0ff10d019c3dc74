package pki

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"net/url"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/coordinator/claim"
	"github.com/leasehold/leasehold/store"
)

// clocks is how far the clock of the checking side may be behind ours (SAFE-13). It is harmless
// that a certificate begins before it was issued: its holder has it only from now on.
const clocks = 24 * time.Hour

// Issue certifies the key of a request for the given identity. The chain is the certificate
// followed by its issuer, so that the holder knows which of several authorities it came from.
func (s Signer) Issue(request []byte, to identity.Identity, lifetime time.Duration) (chain [][]byte, ends time.Time,
	err error,
) {
	key, err := identity.ReadRequest(request)
	if err != nil {
		return nil, time.Time{}, err
	}
	return s.certify(key, to, at(time.Now()), lifetime)
}

// Seal seals what a coordinator knows of an instance (SAFE-17).
func (a *Authority) Seal(c store.Claim) ([]byte, error) {
	s := a.issuer()
	if s.Key == nil {
		return nil, fmt.Errorf("seal claim of %s: the key of certificate authority %s is not here", c.Instance,
			s.Certificate.Subject)
	}
	c.Since = time.Now().UTC().Truncate(time.Second)
	return claim.Seal(c, s.Certificate, s.Key)
}

func (s Signer) certify(key crypto.PublicKey, to identity.Identity, shows span, lifetime time.Duration) (chain [][]byte,
	ends time.Time, err error,
) {
	if err := to.Validate(); err != nil {
		return nil, time.Time{}, err
	}
	c := &x509.Certificate{URIs: []*url.URL{to.URI()}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if to.Role == identity.Coordinator {
		c.DNSNames, c.ExtKeyUsage = []string{to.Host()}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	der, ends, err := s.sign(c, key, shows, lifetime)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("issue certificate of %s: %w", to, err)
	}
	return [][]byte{der, s.Certificate.Raw}, ends, nil
}

// sign makes a certificate for anything but an authority, valid by all times that the clock may
// mean.
func (s Signer) sign(c *x509.Certificate, key crypto.PublicKey, shows span, lifetime time.Duration) ([]byte, time.Time,
	error,
) {
	if err := s.usable(shows); err != nil {
		return nil, time.Time{}, err
	}
	if lifetime <= 0 {
		return nil, time.Time{}, fmt.Errorf("a lifetime of %s", lifetime)
	}
	c.NotBefore, c.NotAfter = shows.first.Add(-clocks).UTC(), shows.last.Add(lifetime).UTC().Truncate(time.Second)
	if c.NotBefore.Before(s.Certificate.NotBefore) {
		c.NotBefore = s.Certificate.NotBefore
	}
	if ends := s.Ends(); c.NotAfter.After(ends) {
		c.NotAfter = ends
	}
	c.KeyUsage, c.BasicConstraintsValid = x509.KeyUsageDigitalSignature, true
	der, err := x509.CreateCertificate(rand.Reader, c, s.Certificate, key, s.Key)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("sign certificate: %w", err)
	}
	return der, c.NotAfter, nil
}

// usable returns why nothing can be issued at the times that the clock may mean, or nil.
func (s Signer) usable(shows span) error {
	switch {
	case s.Key == nil:
		return fmt.Errorf("the key of certificate authority %s is not here", s.Certificate.Subject)
	case !shows.first.Before(s.Ends()):
		return fmt.Errorf("certificate authority %s has ended on %s", s.Certificate.Subject,
			s.Ends().Format(time.RFC3339))
	case shows.last.Before(s.Certificate.NotBefore):
		return fmt.Errorf("certificate authority %s begins on %s only", s.Certificate.Subject,
			s.Certificate.NotBefore.Format(time.RFC3339))
	}
	return nil
}

// works returns why certificates of this authority would not be trusted: for example, it has
// expired, or its own signer allows it only other names or uses.
func (s Signer) works() error {
	if err := s.usable(at(time.Now())); err != nil {
		return err
	}
	key, err := identity.NewKey()
	if err != nil {
		return err
	}
	trust := identity.Trust{Authorities: []*x509.Certificate{s.Certificate}}
	for _, use := range []struct {
		role identity.Role
		need x509.ExtKeyUsage
	}{{identity.Agent, x509.ExtKeyUsageClientAuth}, {identity.Coordinator, x509.ExtKeyUsageServerAuth}} {
		of := identity.Identity{Shard: "probe", Role: use.role, Name: "probe"}
		issued, _, err := s.certify(&key.PublicKey, of, at(time.Now()), time.Minute)
		if err != nil {
			return err
		}
		chain, err := identity.ReadChain(issued)
		if err != nil {
			return fmt.Errorf("read certificate of %s: %w", of, err)
		}
		if _, err := trust.Verify(chain, use.need, "", time.Now()); err != nil {
			return fmt.Errorf("what it issues to %ss would not be believed: %w", use.role, err)
		}
	}
	return nil
}
