package ec2

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/leasehold/leasehold/provider"
)

// gate is what every request to EC2 passes. It bounds their rate, and is closed for a while when EC2
// throttles: twice as long each time, up to maxPause.
type gate struct {
	limit *rate.Limiter

	mu    sync.Mutex
	pause time.Duration // the present or last one
	until time.Time     // when it opens
}

const (
	minPause = time.Second
	maxPause = time.Minute
	// atOnce is how many requests may follow each other at once: in any minute there are at most so
	// many more than calls_per_minute.
	atOnce = 20
)

func newGate(perMinute int) *gate {
	return &gate{limit: rate.NewLimiter(rate.Limit(float64(perMinute)/60), min(atOnce, perMinute))}
}

// pass waits until a request may be sent.
func (g *gate) pass(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		g.mu.Lock()
		closed := time.Until(g.until)
		g.mu.Unlock()
		if closed <= 0 {
			break
		}
		if end, is := ctx.Deadline(); is && time.Until(end) < closed {
			return provider.ThrottledFor(closed)
		}
		if err := wait(ctx, closed); err != nil {
			return err
		}
	}
	if err := g.limit.Wait(ctx); err != nil {
		if ended := ctx.Err(); ended != nil {
			return ended
		}
		return provider.ThrottledFor(minPause) // its turn would come after the call's deadline
	}
	return nil
}

// throttled closes the gate and returns for how long.
func (g *gate) throttled() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	// Answers to requests that were under way when it closed say nothing new.
	if now := time.Now(); !now.Before(g.until) {
		g.pause = min(max(2*g.pause, minPause), maxPause)
		g.until = now.Add(g.pause)
	}
	return max(time.Until(g.until), time.Millisecond)
}

// answered shortens the next pause: EC2 has answered a request that was sent after the last one.
func (g *gate) answered() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.until) > g.pause {
		g.pause = 0
	}
}

// wait ends after d or with the context.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
