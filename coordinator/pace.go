package coordinator

import (
	"context"
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"

	"github.com/leasehold/leasehold/store"
)

const (
	mostJitter = 100 * time.Millisecond
	// paceLook bounds how long a waiting call uses an outdated rate.
	paceLook = time.Second
)

// pace applies the shard's create_rate and create_burst as they are at the time (REC-3). Its queues
// take turns: a long one does not starve the others (REC-9).
type pace struct {
	settings func() store.ShardSettings
	limit    *rate.Limiter
	turn     chan struct{} // full while a call waits for the rate; later calls follow in order
}

func newPace(settings func() store.ShardSettings) *pace {
	now := settings()
	return &pace{
		settings: settings, limit: rate.NewLimiter(rate.Limit(now.CreateRate), burst(now)),
		turn: make(chan struct{}, 1),
	}
}

func burst(s store.ShardSettings) int { return max(1, s.CreateBurst) }

// wait returns when the next call may be made, and false once ctx has ended. Within the burst calls
// go at once; beyond it, jitter keeps coordinators from calling in step.
func (p *pace) wait(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case p.turn <- struct{}{}:
	}
	defer func() { <-p.turn }()
	for {
		p.keepUp()
		if p.limit.Allow() {
			return true
		}
		turn := p.limit.Reserve()
		if d := turn.Delay(); d <= paceLook {
			return rest(ctx, d+rand.N(mostJitter))
		}
		turn.Cancel()
		if !rest(ctx, paceLook) {
			return false
		}
	}
}

// keepUp adopts the present settings.
func (p *pace) keepUp() {
	now := p.settings()
	if r := rate.Limit(now.CreateRate); r != p.limit.Limit() {
		p.limit.SetLimit(r)
	}
	if b := burst(now); b != p.limit.Burst() {
		p.limit.SetBurst(b)
	}
}

// rest waits; it returns false once ctx has ended.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(max(0, d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
