package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
)

// ownLifetime is how long a coordinator's own certificate lasts. It is made in memory, so it need
// not last.
const ownLifetime = 24 * time.Hour

// ownCertificate is a certificate with the time at which it was made, by the monotonic clock and by
// the wall clock.
type ownCertificate struct {
	Certificate *tls.Certificate
	made, wall  time.Time
}

// young reports whether less than a third of its life is over, by both clocks. The wall clock alone
// goes on while the host sleeps, and it may be set: to agents that have the right time the
// certificate would have ended, or not have begun.
func (c ownCertificate) young(now time.Time) bool {
	third := c.Certificate.Leaf.NotAfter.Sub(c.wall) / 3
	passed := now.Round(0).Sub(c.wall)
	return now.Sub(c.made) < third && passed < third && passed > -clocks/2
}

// Certificate returns the coordinator's own certificate for handshakes. It is replaced when a third
// of its life is over, and when another authority issues.
func (a *Authority) Certificate(own identity.Identity) (*tls.Certificate, error) {
	if own.Role != identity.Coordinator {
		return nil, fmt.Errorf("certificate of %s: only a coordinator makes its own", own)
	}
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	issuer := a.files.Issuer
	have, known := a.own[own]
	if known && bytes.Equal(have.Certificate.Certificate[1], issuer.Certificate.Raw) &&
		have.young(now) {
		return have.Certificate, nil
	}
	made, err := issuer.own(own)
	switch {
	case err == nil:
		a.own[own] = ownCertificate{made, now, now.Round(0)}
		return made, nil
	case known && now.Before(have.Certificate.Leaf.NotAfter):
		return have.Certificate, nil // it serves until it ends
	default:
		return nil, err
	}
}

func (s Signer) own(own identity.Identity) (*tls.Certificate, error) {
	key, err := identity.NewKey()
	if err != nil {
		return nil, err
	}
	chain, _, err := s.certify(&key.PublicKey, own, ownLifetime)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		return nil, fmt.Errorf("read certificate of %s: %w", own, err)
	}
	return &tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: leaf}, nil
}
