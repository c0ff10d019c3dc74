package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrSessionLost: the session's lease has ended, by the store's word, or may have ended, by our own
// clock. It is the cause of the end of the context that [RunSession] gives to its work.
var ErrSessionLost = errors.New("session lost")

// The times of a session, apart from its TTL.
const (
	renewRetryFirst = 20 * time.Millisecond
	renewRetryMost  = 500 * time.Millisecond
	revokeWait      = 2 * time.Second
)

// RunSession grants a lease of at least ttl, renews it, and runs work on it.
//
// The context of work ends when ctx does, and with a cause that is ErrSessionLost as soon as the
// lease may have ended: the store says that it is gone, or From + TTL has passed on our own
// monotonic clock without a renewal. So whatever work holds by right of the lease, it lays down no
// later than the store gives it away (given clocks that run at the same rate).
//
// The lease is renewed until work returns, also while work winds down after the end of ctx: work
// must return soon after its context ended. Then the lease is revoked, even if the session was
// lost, so that its keys vanish at once instead of after the TTL. That is tried once and for a
// short time: if it fails, the lease ends by itself.
//
// RunSession returns what work returned; if the session was lost, an error that is ErrSessionLost
// (and work's error, if there is one); if no lease was granted, why.
func RunSession(ctx context.Context, s Store, ttl time.Duration,
	work func(ctx context.Context, lease Lease) error,
) error {
	lease, err := s.Grant(ctx, ttl)
	if err != nil {
		return fmt.Errorf("grant session lease: %w", err)
	}
	defer revoke(ctx, s, lease.ID)
	if time.Until(lease.Ends()) <= 0 {
		return fmt.Errorf("%w: its lease of %s took longer to be granted", ErrSessionLost, lease.TTL)
	}

	workCtx, end := context.WithCancelCause(ctx)
	defer end(nil)
	renewCtx, stopRenewing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRenewing()
	renewed := make(chan struct{})
	var lost error // set before renewed is closed
	go func() {
		defer close(renewed)
		var attempts sync.WaitGroup
		if lost = renew(renewCtx, s, lease, &attempts); lost != nil {
			end(lost)
		}
		stopRenewing()
		attempts.Wait()
	}()
	err = work(workCtx, lease)
	stopRenewing()
	<-renewed
	if lost != nil && err != nil && !errors.Is(err, ErrSessionLost) {
		return fmt.Errorf("%w; work ended with: %w", lost, err)
	}
	if lost != nil {
		return lost
	}
	return err
}

// renew keeps the lease until ctx ends (nil) or the lease may have ended (ErrSessionLost). It waits
// for no answer: a store that breaks its promise to answer within the deadline must not keep us
// believing.
func renew(ctx context.Context, s Store, lease Lease, attempts *sync.WaitGroup) error {
	answers := make(chan renewal, 1) // one attempt at a time, so that none of them blocks
	retry := backoff{first: renewRetryFirst, most: renewRetryMost}
	next := time.NewTimer(lease.TTL / 3)
	defer next.Stop()
	over := time.NewTimer(time.Until(lease.Ends()))
	defer over.Stop()
	var lastErr error
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-over.C:
			if lastErr != nil {
				return fmt.Errorf("%w: not renewed within %s: %w", ErrSessionLost, lease.TTL, lastErr)
			}
			return fmt.Errorf("%w: not renewed within %s", ErrSessionLost, lease.TTL)
		case <-next.C:
			deadline := time.Now().Add(lease.TTL / 6)
			if deadline.After(lease.Ends()) {
				deadline = lease.Ends()
			}
			attempts.Go(func() {
				attempt, done := context.WithDeadline(ctx, deadline)
				defer done()
				l, err := s.Renew(attempt, lease.ID)
				answers <- renewal{l, err}
			})
		case r := <-answers:
			switch {
			case errors.Is(r.err, ErrLeaseGone):
				return fmt.Errorf("%w: %w", ErrSessionLost, r.err)
			case r.err != nil:
				lastErr = r.err
				next.Reset(retry.delay())
			case time.Until(r.lease.Ends()) > 0:
				lease, lastErr = r.lease, nil
				retry.reset()
				over.Reset(time.Until(lease.Ends()))
				next.Reset(time.Until(lease.From.Add(lease.TTL / 3)))
			default: // renewed, but the answer took as long as the lease
				next.Reset(0)
			}
		}
	}
}

// renewal is the answer to one attempt.
type renewal struct {
	lease Lease
	err   error
}

func revoke(ctx context.Context, s Store, id LeaseID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeWait)
	defer cancel()
	_ = s.Revoke(ctx, id) // if it fails, the lease ends by itself
}
