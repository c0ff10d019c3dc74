package certificate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/protocol"
)

// ErrNotJoined means that this machine has no certificate and did not get one. The log has each
// reason once.
var ErrNotJoined = errors.New("this machine has not joined")

// Join gets the first certificate for the join token, if there is none yet; ask asks a replica. It
// may be repeated: it asks with the same key, also after a restart of the agent, until there is a
// certificate.
func (p *Holder) Join(ctx context.Context,
	ask func(context.Context, *protocol.JoinRequest) (*protocol.Certificate, error),
) error {
	if p.usable(time.Now()) {
		return nil
	}
	if err := p.settled(ctx); err != nil { // a call that was given up may still have been answered
		return err
	}
	if p.usable(time.Now()) {
		return nil
	}
	if p.cfg.Bootstrap.JoinToken == "" {
		if p.news("join", "no token") {
			p.log.Warn("no certificate, and no join token in the bootstrap document: this machine cannot join",
				"next", p.replace())
		}
		return fmt.Errorf("%w: it has no join token", ErrNotJoined)
	}
	request, err := p.ask(false)
	if err != nil {
		return err
	}
	if err := p.settled(ctx); err != nil {
		return err
	}
	answer, err := ask(ctx, &protocol.JoinRequest{
		Shard: p.identity.Shard, Instance: p.identity.Name, Token: p.cfg.Bootstrap.JoinToken, Request: request,
	})
	if status.Code(err) == codes.PermissionDenied {
		if p.news("join", "refused") {
			p.log.Warn("join refused: the coordinators' journal says why; it is tried again",
				"next", "leasehold explain "+p.identity.Name+"; if its token was used or has ended, "+p.replace())
		}
		return fmt.Errorf("%w: %s", ErrNotJoined, status.Convert(err).Message())
	}
	if err != nil {
		return err
	}
	if err := p.accept(answer); err != nil {
		if p.news("join", err.Error()) {
			p.log.Warn("join was answered with a certificate that is of no use; it is tried again", "error", err)
		}
		return fmt.Errorf("%w: %w", ErrNotJoined, err)
	}
	if err := p.settled(ctx); err != nil {
		return err
	}
	p.forget("join")
	p.log.Info("joined: this machine has a certificate", "ends", p.Standing().Ends)
	return nil
}

// usable reports whether there is a certificate to present. An expired one is presented as well:
// this machine's clock may be wrong, and the refusal tells the coordinators which instance it is.
func (p *Holder) usable(now time.Time) bool {
	p.mu.Lock()
	own := p.force.leaf()
	now = p.clock.now(now)
	p.mu.Unlock()
	switch {
	case own == nil:
		return false
	case now.After(own.NotAfter):
		if p.news("ended", own.SerialNumber.String()) {
			p.log.Warn("certificate of this machine has ended: no coordinator takes it any more",
				"error", untimely(own, now), "next", "if the clock is right, "+p.replace())
		}
	case now.Before(own.NotBefore):
		if p.news("ended", "early"+own.SerialNumber.String()) {
			p.log.Warn("certificate of this machine is not valid yet", "error", untimely(own, now))
		}
	default:
		p.forget("ended")
	}
	return true
}

func (p *Holder) replace() string {
	return "replace the instance: leasehold instance replace " + p.identity.Name
}

// ask makes a request for a key without a certificate: the key of the last unanswered request, if
// there is one. The key of a renewal is not written to disk: if it is lost, the renewal starts over
// with another.
func (p *Holder) ask(renewal bool) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := p.draft.asked
	if key == nil {
		var err error
		if key, err = identity.NewKey(); err != nil {
			return nil, err
		}
		next := p.draft
		if next.asked = key; renewal {
			p.draft = next
		} else {
			p.revise(next)
		}
	}
	return identity.NewRequest(key)
}
