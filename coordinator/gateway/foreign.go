package gateway

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/guard"
	"github.com/leasehold/leasehold/store"
)

// speaker is a message that announces protocol versions.
type speaker interface {
	GetProtocol() uint32
	GetNewestProtocol() uint32
}

func versionsOf(s speaker) protocol.Versions {
	return protocol.VersionsOf(s.GetProtocol(), s.GetNewestProtocol())
}

// foreign returns the refusal of an agent that shares no protocol version with us.
func foreign(theirs protocol.Versions) guard.Refusal {
	ours := protocol.SupportedVersions()
	f := guard.Refusal{
		Rule: "DET-18", What: "stream refused",
		Why: "its protocol is older than any that is spoken here",
	}
	next := "upgrade the agent"
	if theirs.Newest > ours.Newest {
		f.Why, next = "its protocol is newer than any that is spoken here",
			"upgrade the coordinators first, then the agents"
	}
	f.Detail = fmt.Sprintf("the agent speaks %s of the protocol, this replica %s: %s", theirs, ours, next)
	return f
}

// leaveAlone refuses an agent without a common protocol version. An upgrade in the wrong order must
// cost no machine, so as long as the agent keeps trying, its alive key says that it is refused, on
// a lease that outlasts the longest pause between two of its hellos.
func (s *session) leaveAlone(ctx context.Context) *protocol.Refused {
	f := foreign(versionsOf(s.hello))
	f.Address, f.Claimed, f.Proved = s.from(), s.instance, s.proof.peer != nil
	s.g.refusals.Add(f)
	if refusal := s.writeFirst(ctx, func(ctx context.Context, found found) error {
		return s.noteForeign(ctx, found, f)
	}); refusal != nil {
		return refusal
	}
	return &protocol.Refused{Reason: protocol.Refused_PROTOCOL, Message: f.Detail}
}

// noteForeign writes that the agent exists and is refused. An agent that another replica serves has
// a lease already. An agent that was never served is not noted: a new machine that cannot talk to
// us is replaced like any machine that never registers (DET-11).
func (s *session) noteForeign(ctx context.Context, f found, why guard.Refusal) error {
	switch f.instance.Record.Phase {
	case store.Checking, store.Running, store.Draining:
	default:
		return nil
	}
	a := f.alive.Record
	if f.alive.Present() && (a.State == store.StreamOpen || a.State == store.StreamOverdue) && s.g.mayBeServed(a) {
		return nil
	}
	s.ttl += 2 * s.g.settings().ReconnectMax.D()
	lease, err := s.foreignLease(ctx, f)
	if err != nil {
		return err
	}
	return s.put(ctx, f, lease, store.StreamLeft, store.GoodbyeRefused, why.Detail)
}

// foreignLease keeps the lease that alive is on, if foreignLease granted it.
func (s *session) foreignLease(ctx context.Context, f found) (store.Lease, error) {
	if f.alive.Present() && f.alive.Record.Goodbye == store.GoodbyeRefused {
		if l, err := s.g.deps.Store.Renew(ctx, f.alive.Lease); err == nil && l.TTL == s.ttl {
			return l, nil
		}
	}
	l, err := s.g.deps.Store.Grant(ctx, s.ttl)
	if err != nil {
		return l, fmt.Errorf("grant lease: %w", err)
	}
	return l, nil
}
