package store

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is the wait between attempts: it doubles from first to most, and is drawn between half
// and all of that, so that replicas which failed together do not come back together.
type backoff struct {
	first, most time.Duration
	next        time.Duration
}

// reset makes the next wait a short one again.
func (b *backoff) reset() { b.next = 0 }

// delay returns how long to wait before the next attempt.
func (b *backoff) delay() time.Duration {
	b.next = min(max(2*b.next, b.first), b.most)
	return b.next/2 + rand.N(b.next/2+1)
}

// wait waits for the delay, or fails with ctx's error when ctx ends first.
func (b *backoff) wait(ctx context.Context) error {
	timer := time.NewTimer(b.delay())
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
