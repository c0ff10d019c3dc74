package amazon

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/leasehold/leasehold/provider"
)

// Gate is what every request to a service passes. It bounds their rate, and is closed for a while
// when the service throttles: twice as long each time, up to MaxPause.
type Gate struct {
	limit *rate.Limiter

	mu    sync.Mutex
	pause time.Duration // the present or last one
	until time.Time     // when it opens
}

// MinPause and MaxPause bound the time for which a gate is closed.
const (
	MinPause = time.Second
	MaxPause = time.Minute
)

const (
	// AtOnce is how many requests may follow each other at once: in any minute there are at most so
	// many more than calls_per_minute.
	AtOnce = 20
)

// NewGate makes a gate for so many requests a minute.
func NewGate(perMinute int) *Gate {
	return &Gate{limit: rate.NewLimiter(rate.Limit(float64(perMinute)/60), min(AtOnce, perMinute))}
}

// Pass waits until a request may be sent.
func (g *Gate) Pass(ctx context.Context) error {
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
		if err := Wait(ctx, closed); err != nil {
			return err
		}
	}
	if err := g.limit.Wait(ctx); err != nil {
		if ended := ctx.Err(); ended != nil {
			return ended
		}
		return provider.ThrottledFor(MinPause) // its turn would come after the call's deadline
	}
	return nil
}

// Throttled closes the gate and returns for how long.
func (g *Gate) Throttled() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	// Answers to requests that were under way when it closed say nothing new.
	if now := time.Now(); !now.Before(g.until) {
		g.pause = min(max(2*g.pause, MinPause), MaxPause)
		g.until = now.Add(g.pause)
	}
	return max(time.Until(g.until), time.Millisecond)
}

// Answered shortens the next pause: the service has answered a request that was sent after the last
// one.
func (g *Gate) Answered() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.until) > g.pause {
		g.pause = 0
	}
}

// Wait ends after d or with the context.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
