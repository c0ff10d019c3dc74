package certificate

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/protocol"
)

// Renewal returns a request for the next certificate if it is due, and when to call again. The
// caller sends the request on its stream. Renewal itself notices a missing answer.
func (h *Holder) Renewal(now time.Time) (request []byte, look time.Time) {
	h.mu.Lock()
	here := now
	now = h.clock.now(here) // certificates carry the coordinators' time
	t, joined := h.schedule()
	due := joined && !now.Before(t.next())
	if due {
		h.asked = now
		t.asked = now
	}
	h.mu.Unlock()
	next := func() time.Time { return here.Add(t.next().Sub(now)) }
	if !joined {
		return nil, time.Time{}
	}
	if t.urgent(now) && h.news("urgent", t.until.String()) {
		h.log.Warn("certificate ends soon and is not renewed yet", "ends", t.until, "left", t.until.Sub(now).String())
	}
	if !due {
		return nil, next()
	}
	request, err := h.ask(true)
	if err != nil && h.news("key", err.Error()) {
		h.log.Warn("no new certificate can be asked for", "error", err)
	}
	return request, next()
}

// schedule returns the renewal schedule of the newest certificate. h.mu must be held.
func (h *Holder) schedule() (schedule, bool) {
	own := h.draft.leaf()
	if own == nil {
		return schedule{}, false
	}
	t := schedule{
		from: h.draft.begun(), until: own.NotAfter, held: h.held, stillForeign: h.stillForeign, asked: h.asked,
		jitter: h.jitter,
	}
	if h.draft.issuerChanged() {
		t.foreign = h.heard
	}
	return t, true
}

// issuerChanged reports whether an authority other than the certificate's issues now.
func (p papers) issuerChanged() bool { return p.trust.Issuer != "" && p.trust.Issuer != p.issuer }

// Accept takes the answer to a request: a certificate and the authorities to trust. An unusable
// answer is logged and changes nothing.
func (h *Holder) Accept(answer *protocol.Certificate) {
	if err := h.accept(answer); err != nil {
		if h.news("accept", err.Error()) {
			h.log.Warn("a coordinator sent an unusable certificate: the present one is kept", "error", err)
		}
		return
	}
	h.forget("accept")
	h.forget("urgent")
}

// SetTrust replaces the trusted authorities. An unusable message is logged and changes nothing.
func (h *Holder) SetTrust(t *protocol.Trust) {
	trust, err := readTrust(t)
	if err != nil {
		if h.news("believe", err.Error()) {
			h.log.Warn("a coordinator sent unusable trust: the present one is kept", "error", err)
		}
		return
	}
	h.forget("believe")
	h.mu.Lock()
	next := h.draft
	news := trust.Digest() != next.trust.Digest()
	if news {
		h.trusting(trust, h.clock.now(time.Now()))
		next.trust = trust
		h.revise(next)
	}
	h.mu.Unlock()
	if news {
		h.tellTrust(trust)
	}
}

// trusting records since when the issuing authority is known. h.mu must be held.
func (h *Holder) trusting(trust identity.Trust, now time.Time) {
	if trust.Issuer != h.draft.trust.Issuer {
		h.heard, h.stillForeign = now, false
	}
}

func (h *Holder) tellTrust(trust identity.Trust) {
	var names []string
	for _, c := range trust.Authorities {
		names = append(names, identity.Fingerprint(c))
	}
	h.log.Info("trusted authorities have changed", "authorities", names, "issuer", trust.Issuer)
}

func readTrust(t *protocol.Trust) (identity.Trust, error) {
	return identity.TrustOf(t.GetAuthorities(), t.GetIssuer())
}

// accept stores the certificate and the trust of an answer, if the certificate is for the requested
// key and names this machine, and its chain is trusted. The same answer again changes nothing.
func (h *Holder) accept(answer *protocol.Certificate) error {
	chain, err := identity.ReadChain(answer.GetChain())
	if err != nil {
		return err
	}
	if err := h.timely(chain[0]); err != nil {
		return err
	}
	h.Tell(answer.GetIssued())
	h.mu.Lock()
	now := h.clock.now(time.Now())
	h.mu.Unlock()
	trust, err := h.trustOf(answer)
	if err != nil {
		return err
	}
	if h.has(chain[0].PublicKey) {
		return nil
	}
	if err := namesUs(chain[0], h.identity.Shard, h.identity.Name); err != nil {
		return err
	}
	issuer, err := believed(chain, trust, now)
	if err != nil {
		return err
	}
	first, news, err := h.takeOver(chain, issuer, trust, now)
	if err != nil {
		return err
	}
	if first {
		return nil // the caller of Join logs it
	}
	if news {
		h.tellTrust(trust)
	}
	h.log.Info("certificate renewed", "ends", chain[0].NotAfter, "issuer", issuer)
	return nil
}

// timely returns an error if a renewal is valid neither by this machine's clock nor by the proven
// time of the coordinators: the clock of the coordinator that answered has jumped. With such a
// certificate no other coordinator would let the machine in, nor would that one once its clock is
// right (SAFE-13).
func (h *Holder) timely(c *x509.Certificate) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draft.key == nil || !h.clock.live {
		return nil
	}
	here := time.Now()
	for _, now := range []time.Time{here, h.clock.proven(here).now(here)} {
		if !now.Before(c.NotBefore) && !now.After(c.NotAfter) {
			return nil
		}
	}
	return fmt.Errorf("the coordinator's clock has jumped: %w", untimely(c, here))
}

// trustOf returns the authorities to trust after an answer: those in the answer, or the present
// ones if it names none.
func (h *Holder) trustOf(answer *protocol.Certificate) (identity.Trust, error) {
	if answer.GetTrust() != nil {
		return readTrust(answer.GetTrust())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.draft.trust, nil
}

// takeOver stores these papers if the certificate is for the requested key. It reports whether this
// is the machine's first certificate, and whether the trust has changed.
func (h *Holder) takeOver(chain []*x509.Certificate, issuer string, trust identity.Trust, now time.Time) (first,
	news bool, err error,
) {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := h.draft
	if next.asked == nil || !next.asked.PublicKey.Equal(chain[0].PublicKey) {
		return false, false, errors.New("the certificate is not for the key of the request")
	}
	first, news = next.key == nil, trust.Digest() != next.trust.Digest()
	h.trusting(trust, now)
	next.key, next.chain, next.issuer, next.trust, next.asked = next.asked, chain, issuer, trust, nil
	next.issued, next.here = now, time.Now().Round(0)
	h.held, h.asked, h.jitter, h.stillForeign = now, time.Time{}, h.deps.Rand(), next.issuerChanged()
	h.revise(next)
	return first, news, nil
}

// has reports whether the newest certificate is for this key.
func (h *Holder) has(key any) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.draft.key != nil && h.draft.key.PublicKey.Equal(key)
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
		return "", fmt.Errorf("the certificate is not signed by an authority that came with it: %w", err)
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

// namesUs returns an error if a certificate does not name this machine.
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
