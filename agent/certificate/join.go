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

// Join gets the first certificate for the join token if there is none yet; ask sends the request to
// a replica. Join may be repeated: until there is a certificate it uses the same key, even after a
// restart of the agent.
func (h *Holder) Join(ctx context.Context,
	ask func(context.Context, *protocol.JoinRequest) (*protocol.Certificate, error),
) error {
	if h.usable(time.Now()) {
		return nil
	}
	if err := h.settled(ctx); err != nil { // an abandoned call may have been answered
		return err
	}
	if h.usable(time.Now()) {
		return nil
	}
	if h.cfg.Bootstrap.JoinToken == "" {
		if h.news("join", "no token") {
			h.log.Warn("no certificate, and no join token in the bootstrap document: this machine cannot join",
				"next", h.replace())
		}
		return fmt.Errorf("%w: it has no join token", ErrNotJoined)
	}
	request, err := h.ask(false)
	if err != nil {
		return err
	}
	if err := h.settled(ctx); err != nil {
		return err
	}
	answer, err := ask(ctx, &protocol.JoinRequest{
		Shard: h.identity.Shard, Instance: h.identity.Name, Token: h.cfg.Bootstrap.JoinToken, Request: request,
	})
	if status.Code(err) == codes.PermissionDenied {
		if h.news("join", "refused") {
			h.log.Warn("join refused: the coordinators' journal says why; it is tried again",
				"next", "leasehold explain "+h.identity.Name+"; if its token was used or has ended, "+h.replace())
		}
		return fmt.Errorf("%w: %s", ErrNotJoined, status.Convert(err).Message())
	}
	if err != nil {
		return err
	}
	if err := h.accept(answer); err != nil {
		if h.news("join", err.Error()) {
			h.log.Warn("the answer to the join has an unusable certificate; the join is tried again", "error", err)
		}
		return fmt.Errorf("%w: %w", ErrNotJoined, err)
	}
	if err := h.settled(ctx); err != nil {
		return err
	}
	h.forget("join")
	h.log.Info("joined: this machine has a certificate", "ends", h.Status().Ends)
	return nil
}

// usable reports whether there is a certificate to present. An expired one counts: this machine's
// clock may be wrong, and the refusal tells the coordinators which instance it is.
func (h *Holder) usable(now time.Time) bool {
	h.mu.Lock()
	own := h.force.leaf()
	now = h.clock.now(now)
	h.mu.Unlock()
	switch {
	case own == nil:
		return false
	case now.After(own.NotAfter):
		if h.news("ended", own.SerialNumber.String()) {
			h.log.Warn("certificate of this machine has expired: coordinators refuse it",
				"error", untimely(own, now), "next", "if the clock is right, "+h.replace())
		}
	case now.Before(own.NotBefore):
		if h.news("ended", "early"+own.SerialNumber.String()) {
			h.log.Warn("certificate of this machine is not valid yet", "error", untimely(own, now))
		}
	default:
		h.forget("ended")
	}
	return true
}

func (h *Holder) replace() string {
	return "replace the instance: leasehold instance replace " + h.identity.Name
}

// ask makes a request for a key without a certificate: the key of the last unanswered request, if
// any. The key of a renewal is not written to disk: if it is lost, the renewal starts over with
// another key.
func (h *Holder) ask(renewal bool) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := h.draft.asked
	if key == nil {
		var err error
		if key, err = identity.NewKey(); err != nil {
			return nil, err
		}
		next := h.draft
		if next.asked = key; renewal {
			h.draft = next
		} else {
			h.revise(next)
		}
	}
	return identity.NewRequest(key)
}
