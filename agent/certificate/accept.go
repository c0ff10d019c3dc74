package certificate

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/protocol"
)

// Renewal returns a request for the next certificate if it is time for one, and when to look again.
// The caller sends the request on its stream. A missing answer is noticed here.
func (p *Holder) Renewal(now time.Time) (request []byte, look time.Time) {
	p.mu.Lock()
	here := now
	now = p.clock.now(here) // certificates are dated by the coordinators' time
	t, joined := p.term()
	due := joined && !now.Before(t.next())
	if due {
		p.asked = now
		t.asked = now
	}
	p.mu.Unlock()
	next := func() time.Time { return here.Add(t.next().Sub(now)) }
	if !joined {
		return nil, time.Time{}
	}
	if t.urgent(now) && p.news("urgent", t.until.String()) {
		p.log.Warn("certificate ends soon and is not renewed yet", "ends", t.until, "left", t.until.Sub(now).String())
	}
	if !due {
		return nil, next()
	}
	request, err := p.ask(true)
	if err != nil && p.news("key", err.Error()) {
		p.log.Warn("no new certificate can be asked for", "error", err)
	}
	return request, next()
}

// term returns what decides about the newest certificate. p.mu must be held.
func (p *Holder) term() (term, bool) {
	own := p.draft.leaf()
	if own == nil {
		return term{}, false
	}
	t := term{
		from: p.draft.begun(), until: own.NotAfter, held: p.held, circle: p.circle, asked: p.asked,
		jitter: p.jitter,
	}
	if p.draft.foreign() {
		t.foreign = p.heard
	}
	return t, true
}

// foreign reports whether another authority than the certificate's issues now.
func (p papers) foreign() bool { return p.trust.Issuer != "" && p.trust.Issuer != p.issuer }

// Accept takes the answer to a request: a certificate and the authorities to trust. An unusable
// answer is logged and changes nothing.
func (p *Holder) Accept(answer *protocol.Certificate) {
	if err := p.accept(answer); err != nil {
		if p.news("accept", err.Error()) {
			p.log.Warn("certificate from a coordinator is of no use: the present one stays", "error", err)
		}
		return
	}
	p.forget("accept")
	p.forget("urgent")
}

// Believe replaces the trusted authorities. An unusable message is logged and changes nothing.
func (p *Holder) Believe(t *protocol.Trust) {
	trust, err := readTrust(t)
	if err != nil {
		if p.news("believe", err.Error()) {
			p.log.Warn("trust from a coordinator is of no use: the present one stays", "error", err)
		}
		return
	}
	p.forget("believe")
	p.mu.Lock()
	next := p.draft
	news := trust.Digest() != next.trust.Digest()
	if news {
		p.trusting(trust, p.clock.now(time.Now()))
		next.trust = trust
		p.revise(next)
	}
	p.mu.Unlock()
	if news {
		p.tellTrust(trust)
	}
}

// trusting notes since when it is known which authority issues. p.mu must be held.
func (p *Holder) trusting(trust identity.Trust, now time.Time) {
	if trust.Issuer != p.draft.trust.Issuer {
		p.heard, p.circle = now, false
	}
}

func (p *Holder) tellTrust(trust identity.Trust) {
	var names []string
	for _, c := range trust.Authorities {
		names = append(names, identity.Fingerprint(c))
	}
	p.log.Info("trusted authorities have changed", "authorities", names, "issuer", trust.Issuer)
}

func readTrust(t *protocol.Trust) (identity.Trust, error) {
	return identity.TrustOf(t.GetAuthorities(), t.GetIssuer())
}

// accept makes the certificate and the trust of an answer the newest papers, if they are over the
// key that was asked with, name this machine and can be believed. The same answer again changes
// nothing.
func (p *Holder) accept(answer *protocol.Certificate) error {
	chain, err := identity.ReadChain(answer.GetChain())
	if err != nil {
		return err
	}
	if err := p.timely(chain[0]); err != nil {
		return err
	}
	p.Tell(answer.GetIssued())
	p.mu.Lock()
	now := p.clock.now(time.Now())
	p.mu.Unlock()
	trust, err := p.trustOf(answer)
	if err != nil {
		return err
	}
	if p.has(chain[0].PublicKey) {
		return nil
	}
	if err := namesUs(chain[0], p.identity.Shard, p.identity.Name); err != nil {
		return err
	}
	issuer, err := believed(chain, trust, now)
	if err != nil {
		return err
	}
	first, news, err := p.takeOver(chain, issuer, trust, now)
	if err != nil {
		return err
	}
	if first {
		return nil // the caller of Join logs it
	}
	if news {
		p.tellTrust(trust)
	}
	p.log.Info("certificate renewed", "ends", chain[0].NotAfter, "issuer", issuer)
	return nil
}

// timely returns an error if a renewal is valid neither by this machine's clock nor by the time
// that coordinators have told before: the clock of the one that answers has jumped. With such a
// certificate no other one, nor that one with a right clock, would let the machine in (SAFE-13).
func (p *Holder) timely(c *x509.Certificate) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.draft.key == nil || !p.clock.live {
		return nil
	}
	for _, now := range p.clock.times(time.Now()) {
		if !now.Before(c.NotBefore) && !now.After(c.NotAfter) {
			return nil
		}
	}
	return fmt.Errorf("the coordinator's clock has jumped: %w", untimely(c, time.Now()))
}

// trustOf returns the authorities to trust after an answer: those in the answer, or the present
// ones if it names none.
func (p *Holder) trustOf(answer *protocol.Certificate) (identity.Trust, error) {
	if answer.GetTrust() != nil {
		return readTrust(answer.GetTrust())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.draft.trust, nil
}

// takeOver makes these the newest papers, if the certificate is over the key that was asked with.
// It reports whether it is the machine's first, and whether the trust has changed.
func (p *Holder) takeOver(chain []*x509.Certificate, issuer string, trust identity.Trust, now time.Time) (first,
	news bool, err error,
) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.draft
	if next.asked == nil || !next.asked.PublicKey.Equal(chain[0].PublicKey) {
		return false, false, errors.New("the certificate is not over the key that was asked with")
	}
	first, news = next.key == nil, trust.Digest() != next.trust.Digest()
	p.trusting(trust, now)
	next.key, next.chain, next.issuer, next.trust, next.asked = next.asked, chain, issuer, trust, nil
	next.issued = now
	p.held, p.asked, p.jitter, p.circle = now, time.Time{}, p.deps.Rand(), next.foreign()
	p.revise(next)
	return first, news, nil
}

// has reports whether the newest certificate is over this key.
func (p *Holder) has(key any) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.draft.key != nil && p.draft.key.PublicKey.Equal(key)
}

// believed verifies a chain and returns the fingerprint of the authority that signed its first
// certificate.
func believed(chain []*x509.Certificate, trust identity.Trust, now time.Time) (string, error) {
	ways, err := trust.Verify(chain, x509.ExtKeyUsageClientAuth, "", now)
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "", fmt.Errorf("the certificate is not valid now: %w", untimely(invalid.Cert, now))
	case err != nil:
		return "", fmt.Errorf("the certificate is of no authority that came with it: %w", err)
	}
	var signer string
	for _, way := range ways {
		if len(way) < 2 {
			return "", errors.New("the certificate is an authority's own")
		}
		if signer = identity.Fingerprint(way[1]); signer == trust.Issuer {
			break
		}
	}
	return signer, nil
}

// namesUs returns what is wrong with a certificate that does not name this machine, or "".
func namesUs(c *x509.Certificate, shard, instance string) error {
	who, err := identity.Of(c)
	if err != nil {
		return err
	}
	if us := (identity.Identity{Shard: shard, Role: identity.Agent, Name: instance}); who != us {
		return fmt.Errorf("the certificate names %s, not %s", who, us)
	}
	return nil
}
