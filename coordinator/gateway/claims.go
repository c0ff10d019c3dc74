package gateway

import (
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/claim"
	"github.com/leasehold/leasehold/coordinator/guard"
	"github.com/leasehold/leasehold/store"
)

// claimed is a session's knowledge of its instance's claim (SAFE-17). The lock of wanted guards it.
type claimed struct {
	now    *store.Claim // by the newest record that is known; it stays when the record is lost
	sent   *store.Claim // sealed, as the agent has it
	issuer string       // the authority that sealed it
}

// take updates the claim from a record, and reports whether it changed.
func (c *claimed) take(shard string, i store.Instance) bool {
	now := claim.Of(shard, i)
	if c.now != nil && claim.Same(*c.now, now) {
		return false
	}
	c.now = &now
	return true
}

// recallClaim checks whether the agent already has a claim that matches the record. The signature
// is not verified, because that would cost more than sealing again: an agent that damages its claim
// harms only itself.
func (s *session) recallClaim() {
	if s.g.deps.Authority == nil || len(s.hello.GetClaim()) == 0 {
		return
	}
	shown, issuer, err := claim.Peek(s.hello.GetClaim())
	if err != nil || issuer != s.g.deps.Authority.Trust().Issuer {
		return
	}
	w := &s.wanted
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := &w.claim; c.now != nil && claim.Same(*c.now, shown) {
		c.sent, c.issuer = c.now, issuer
	}
}

// claimDue returns the claim to send to the agent; nil if the agent has it. s.mu and the lock of
// wanted must be held.
func (s *session) claimDue() *store.Claim {
	c := &s.wanted.claim
	if s.g.deps.Authority == nil || c.now == c.sent {
		return nil
	}
	return c.now
}

// withClaim adds the sealed claim to a message. If the authority cannot seal now, the message goes
// without it, and the next change tries again.
func (s *session) withClaim(full *protocol.Wanted, due *store.Claim) *protocol.Wanted {
	issuer := s.g.deps.Authority.Trust().Issuer
	sealed, err := s.g.deps.Authority.Seal(*due)
	if err != nil {
		s.g.deps.Logger.Warn("claim could not be sealed", "instance", s.instance, "error", err)
	} else {
		full = proto.CloneOf(full)
		full.Claim = sealed
	}
	w := &s.wanted
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claim.sent, w.claim.issuer = due, issuer
	return full
}

// resealed sends the claim again if another authority issues now: the authority that sealed it will
// not always be trusted. s.mu must be held.
func (s *session) resealed(issuer string) error {
	w := &s.wanted
	w.mu.Lock()
	stale := w.claim.sent != nil && w.claim.issuer != issuer
	if stale {
		w.claim.sent = nil
	}
	w.mu.Unlock()
	if !stale {
		return nil
	}
	return s.sendWanted()
}

// recordedAt returns the revision of the newest record of the instance that the session has seen;
// 0: none.
func (s *session) recordedAt() store.Revision {
	s.wanted.mu.Lock()
	defer s.wanted.mu.Unlock()
	return s.wanted.record
}

// hasClaim reports whether there is something that shownClaim could return.
func (s *session) hasClaim() bool {
	s.wanted.mu.Lock()
	known := s.wanted.claim.now != nil
	s.wanted.mu.Unlock()
	return known || s.g.deps.Authority != nil && len(s.hello.GetClaim()) > 0
}

// shownClaim returns what is known of an instance without a record: from the record that the
// session has seen, or from its agent's claim, if the seal is valid. Nil: nothing.
func (s *session) shownClaim() *store.Claim {
	s.wanted.mu.Lock()
	known := s.wanted.claim.now
	s.wanted.mu.Unlock()
	if known != nil || s.g.deps.Authority == nil || s.hello == nil || len(s.hello.GetClaim()) == 0 {
		return known
	}
	shown, err := claim.Open(s.hello.GetClaim(), s.g.deps.Authority.Trust())
	var why string
	switch {
	case err != nil:
		why = "its seal does not hold"
	case shown.Shard != s.g.cfg.ShardID || shown.Instance != s.instance:
		why = "it is of another instance"
	default:
		return &shown
	}
	refusal := guard.Refusal{
		Rule: "SAFE-17", What: "claim ignored", Why: why, Address: s.from(), Claimed: s.instance,
		Proved: s.proof.peer != nil,
	}
	if err != nil {
		refusal.Detail = err.Error()
	}
	s.g.refusals.Add(refusal)
	return nil
}
