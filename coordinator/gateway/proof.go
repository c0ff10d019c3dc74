package gateway

import (
	"context"
	"crypto/x509"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/guard"
)

// The bounds of what a session may ask of the authority (SEC-5).
const (
	trustAgain = 30 * time.Second // how often trust is sent again to an agent that reports another one
)

// proof identifies the peer of a session: the newest certificate of the agent that this replica
// knows. s.mu guards all of it.
type proof struct {
	peer  *Peer // nil: the streams are not secured
	chain []*x509.Certificate
	timer *time.Timer // runs out with the certificate

	renewals guard.RenewalState

	sent   string // digest of the trust that was sent last
	sentAt time.Time
	has    string // digest of the trust that the agent reported
	agreed string // the digest on which both sides agreed, until ours may have changed
}

// agentIdentity returns the identity in the certificate of an instance's agent.
func (g *Gateway) agentIdentity(instance string) identity.Identity {
	return identity.Identity{Shard: g.cfg.ShardID, Role: identity.Agent, Name: instance}
}

// prove compares the hello with the certificate of the connection: an agent can act only as itself
// (SEC-1). A mismatch is recorded.
func (s *session) prove() *protocol.Refused {
	if s.g.deps.Authority == nil {
		return nil
	}
	want := s.g.agentIdentity(s.instance)
	refuse := func(why, detail string) *protocol.Refused {
		s.g.refusals.Add(guard.Refusal{
			Rule: "SEC-1", What: "stream refused", Why: why, Address: s.from(),
			Claimed: s.instance, Detail: detail,
		})
		return &protocol.Refused{
			Reason:  protocol.Refused_CERTIFICATE,
			Message: "the stream needs the certificate of " + want.String(),
		}
	}
	p := s.proof.peer
	switch {
	case p == nil || len(p.Chain) == 0:
		return refuse("it shows no certificate", "")
	case p.Identity.Role != want.Role:
		return refuse("the certificate is not an agent's", "it shows "+p.Identity.String())
	case p.Identity.Shard != want.Shard:
		refusal := refuse("the certificate is of another shard", "it shows "+p.Identity.String())
		if s.hello.GetShard() == p.Identity.Shard && p.Identity.Name == s.instance {
			return &protocol.Refused{
				Reason:  protocol.Refused_WRONG_SHARD,
				Message: "this replica serves shard " + s.g.cfg.ShardID,
			}
		}
		return refusal
	case p.Identity != want:
		return refuse("the certificate is another instance's", "it shows "+p.Identity.String())
	}
	s.proof.chain = p.Chain
	return nil
}

// watch follows the certificate's expiry and changes of trust, including those before the call,
// until rest is called.
func (p *proof) watch(s *session) {
	if len(p.chain) == 0 {
		return
	}
	p.timer = time.AfterFunc(time.Until(p.chain[0].NotAfter), func() { s.notify(topicCertificate) })
	s.notify(topicTrust)
}

func (p *proof) rest() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

// certificateEnded ends the session, unless another certificate was issued at that moment, or the
// wall clock was set back since the timer was set: then the timer is set again.
func (s *session) certificateEnded() error {
	left := time.Until(s.proof.chain[0].NotAfter)
	if left <= 0 {
		s.close(errCertificate)
		return nil
	}
	s.proof.timer.Reset(left)
	return nil
}

// renewCertificate gives the agent another certificate on its stream (SEC-3). An invalid request
// ends the stream; an authority that cannot issue now does not: the agent asks again.
func (s *session) renewCertificate(r *protocol.RenewCertificate) error {
	if len(s.proof.chain) == 0 {
		return nil
	}
	if _, err := identity.ReadRequest(r.GetRequest()); err != nil {
		s.g.refusals.Add(guard.Refusal{
			Rule: "SEC-1", What: "renewal refused",
			Why: "the request is malformed, or its key is not ECDSA P-256", Address: s.from(), Claimed: s.instance,
			Proved: true, Detail: err.Error(),
		})
		_ = s.stream.Send(refusedMessage(&protocol.Refused{
			Reason: protocol.Refused_MALFORMED, Message: "this is no request for a certificate that can be granted",
		}))
		return err
	}
	der, ends, err := s.g.deps.Authority.Issue(r.GetRequest(), s.g.agentIdentity(s.instance),
		s.g.settings().Certificate.D())
	if err != nil {
		s.g.deps.Logger.Error("certificate could not be renewed", "instance", s.instance, "error", err)
		return nil
	}
	chain, err := identity.ReadChain(der)
	if err != nil {
		s.g.deps.Logger.Error("certificate could not be renewed", "instance", s.instance, "error", err)
		return nil
	}
	trust := s.g.deps.Authority.Trust()
	msg := &protocol.Certificate{Chain: der, Issued: timestamppb.Now()}
	if !s.g.leaveTrust(trust, s.proof.has) {
		msg.Trust = trustMessage(trust)
		s.proof.sent, s.proof.sentAt = trust.Digest(), time.Now()
	}
	if err := s.stream.Send(
		&protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Certificate{Certificate: msg}},
	); err != nil {
		return err
	}
	s.proof.chain = chain
	s.proof.timer.Reset(time.Until(ends))
	s.g.deps.Logger.Info("certificate renewed", "instance", s.instance, "ends", ends)
	return nil
}

func trustMessage(t identity.Trust) *protocol.Trust {
	return &protocol.Trust{Authorities: t.DER(), Issuer: t.Issuer}
}

// sendTrust sends the trusted authorities, unless the agent reports the same.
func (s *session) sendTrust(has string) error {
	if len(s.proof.chain) == 0 {
		return nil
	}
	if has != "" && has == s.proof.agreed {
		return nil // true for most reports, so nothing has to be hashed
	}
	s.proof.has = has
	trust := s.g.deps.Authority.Trust()
	digest := trust.Digest()
	if has == digest {
		s.proof.agreed = has
		return nil
	}
	if digest == s.proof.sent && time.Since(s.proof.sentAt) < trustAgain || s.g.leaveTrust(trust, has) {
		return nil
	}
	s.proof.sent, s.proof.sentAt = digest, time.Now()
	return s.stream.Send(&protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Trust{Trust: trustMessage(trust)}})
}

// trustChanged sends the trusted authorities, and ends the session if the authority of its newest
// certificate is no longer trusted.
func (s *session) trustChanged() error {
	if len(s.proof.chain) == 0 {
		return nil
	}
	s.proof.agreed = ""
	if err := s.sendTrust(s.proof.has); err != nil {
		return err
	}
	trust := s.g.deps.Authority.Trust()
	if err := s.resealed(trust.Issuer); err != nil {
		return err
	}
	if _, err := trust.Verify(s.proof.chain, x509.ExtKeyUsageClientAuth, "", time.Now()); err != nil {
		s.close(errDistrusted)
	}
	return nil
}

// followTrust sends every change of the trusted authorities to all sessions, until ctx ends.
func (g *Gateway) followTrust(ctx context.Context) {
	if g.deps.Authority == nil {
		return
	}
	for {
		changed := g.deps.Authority.Changed()
		for _, s := range g.all() {
			s.notify(topicTrust)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}
