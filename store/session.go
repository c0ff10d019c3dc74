package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrSessionLost: the session's lease has ended, by the store's word, or may have ended, by our own
// clock. It is the cause of the end of the context that [Sessions.Run] gives to its work.
var ErrSessionLost = errors.New("session lost")

// The times of a session, apart from its TTL.
const (
	renewRetryFirst = 20 * time.Millisecond
	maxRenewRetry   = 500 * time.Millisecond
	revokeWait      = 2 * time.Second
)

// Sessions runs the sessions of one owner, one after another.
type Sessions struct {
	store   Store
	ttl     time.Duration
	unended []LeaseID // of earlier sessions; they could not be revoked
}

// maxUnended bounds how many leases are tried again. Older ones end by themselves.
const maxUnended = 8

// NewSessions returns Sessions whose leases last at least ttl.
func NewSessions(s Store, ttl time.Duration) *Sessions { return &Sessions{store: s, ttl: ttl} }

// Run grants a lease, renews it, and runs work on it.
//
// The context of work ends when ctx does, and with a cause that is ErrSessionLost as soon as the
// lease may have ended: the store says that it is gone, or From + TTL has passed on our own
// monotonic clock without a renewal. So work stops using what it holds by the lease no later than
// the store gives it to others, provided that both clocks run at the same rate.
//
// The lease is renewed until work returns, also while work winds down after the end of ctx: work
// must return soon after its context ended. Then the lease is revoked, even if the session was
// lost, so its keys vanish at once instead of after the TTL. If the store cannot be reached,
// the next Run revokes it: etcd restarts every lease when it gets a new leader, so the keys of
// a session that was lost with etcd's quorum would otherwise stay for another TTL.
//
// Run returns what work returned; if the session was lost, an error that is ErrSessionLost (and
// work's error, if there is one); if no lease was granted, why. It must not be called by two
// goroutines at once.
func (s *Sessions) Run(ctx context.Context, work func(ctx context.Context, lease Lease) error) error {
	lease, err := s.store.Grant(ctx, s.ttl)
	if err != nil {
		return fmt.Errorf("grant session lease: %w", err)
	}
	defer func() {
		if revoke(ctx, s.store, lease.ID) != nil {
			s.unended = append(s.unended, lease.ID)
			s.unended = s.unended[max(0, len(s.unended)-maxUnended):]
		}
	}()
	if time.Until(lease.Ends()) <= 0 {
		return fmt.Errorf("%w: its lease of %s took longer to be granted", ErrSessionLost, lease.TTL)
	}

	var revoking sync.WaitGroup
	revoking.Go(func() { s.revokeUnended(ctx) })
	defer revoking.Wait()
	workCtx, end := context.WithCancelCause(ctx)
	defer end(nil)
	renewCtx, stopRenewing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRenewing()
	renewed := make(chan struct{})
	var lost error // set before renewed is closed
	go func() {
		defer close(renewed)
		var attempts sync.WaitGroup
		if lost = renew(renewCtx, s.store, lease, &attempts); lost != nil {
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
	retry := backoff{first: renewRetryFirst, most: maxRenewRetry}
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

// revokeUnended revokes the leases of earlier sessions.
func (s *Sessions) revokeUnended(ctx context.Context) {
	for len(s.unended) > 0 {
		if revoke(ctx, s.store, s.unended[0]) != nil {
			return // the next session tries again
		}
		s.unended = s.unended[1:]
	}
}

// revoke revokes a lease, even if ctx has ended.
func revoke(ctx context.Context, s Store, id LeaseID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeWait)
	defer cancel()
	return s.Revoke(ctx, id)
}
