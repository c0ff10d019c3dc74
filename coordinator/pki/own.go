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

// ownCertificate is a certificate with the time at which it was made, by the monotonic clock, and
// the offsets that it was made for.
type ownCertificate struct {
	Certificate *tls.Certificate
	made        time.Time
	offsets
}

// offsets are the smallest and the largest distance of the wall clock from the monotonic one since
// the start. The distance changes when the clock is set and when the host has slept.
type offsets struct{ low, high time.Duration }

// span is the time by a clock that has jumped, with its lowest and its highest offset.
type span struct{ first, last time.Time }

// at is the time by a clock that has not jumped.
func at(now time.Time) span { return span{now, now} }

// young reports whether less than a third of its lifetime is over, and the clock shows a time that
// it was made for.
func (c ownCertificate) young(now time.Time, offset time.Duration) bool {
	const third = ownLifetime / 3
	return now.Sub(c.made)+max(0, offset-c.high) < third && c.low-offset < clocks/2
}

// readClock reads the wall clock. a.mu must be held.
func (a *Authority) readClock(now time.Time) (offset time.Duration, shows span) {
	passed, start := now.Sub(a.began), a.began.Round(0)
	offset = a.wall().Sub(start) - passed
	a.seen = offsets{min(a.seen.low, offset), max(a.seen.high, offset)}
	return offset, span{start.Add(passed + a.seen.low), start.Add(passed + a.seen.high)}
}

// Certificate returns the coordinator's own certificate for handshakes. It is replaced when a third
// of its lifetime is over, when the wall clock has jumped, and when another authority issues.
//
// The coordinator cannot know whether a jump has put the clock right or wrong, so a certificate is
// valid by all times that the clock has shown since the start: agents have the right time, and
// would refuse a certificate that is not valid at it (SAFE-13). It is harmless that it lasts
// longer: its key ends with this process.
func (a *Authority) Certificate(own identity.Identity) (*tls.Certificate, error) {
	if own.Role != identity.Coordinator {
		return nil, fmt.Errorf("certificate of %s: only a coordinator makes its own", own)
	}
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	issuer := a.files.Issuer
	offset, shows := a.readClock(now)
	have, known := a.own[own]
	if known && bytes.Equal(have.Certificate.Certificate[1], issuer.Certificate.Raw) &&
		have.young(now, offset) {
		return have.Certificate, nil
	}
	made, err := issuer.own(own, shows)
	switch {
	case err == nil:
		a.own[own] = ownCertificate{made, now, a.seen}
		return made, nil
	case known && now.Before(have.Certificate.Leaf.NotAfter):
		return have.Certificate, nil // it is used until it expires
	default:
		return nil, err
	}
}

func (s Signer) own(own identity.Identity, shows span) (*tls.Certificate, error) {
	key, err := identity.NewKey()
	if err != nil {
		return nil, err
	}
	chain, _, err := s.certify(&key.PublicKey, own, shows, ownLifetime)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		return nil, fmt.Errorf("read certificate of %s: %w", own, err)
	}
	return &tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: leaf}, nil
}
