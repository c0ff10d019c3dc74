package leader

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/leasehold/leasehold/store"
)

const (
	maxJitter = 100 * time.Millisecond
	// maxRateAge bounds how long a waiting call uses an outdated rate.
	maxRateAge = time.Second
)

// pace applies the shard's create_rate and create_burst as they are at the time (REC-3).
type pace struct {
	limit    *rate.Limiter
	jitter   func(most time.Duration) time.Duration
	at       time.Time // the first in line waits until then
	reserved bool      // and may go then; otherwise it asks again
}

func newPace(settings store.ShardSettings, jitter func(time.Duration) time.Duration) *pace {
	return &pace{limit: rate.NewLimiter(rate.Limit(settings.CreateRate), burst(settings)), jitter: jitter}
}

func burst(s store.ShardSettings) int { return max(1, s.CreateBurst) }

// pass reports whether the first in line may go now. If not, it may at p.at, or is to ask again
// then. Within the burst calls go at once; beyond it, jitter keeps coordinators from calling in
// step.
func (p *pace) pass(now time.Time, settings store.ShardSettings) bool {
	if now.Before(p.at) {
		return false
	}
	if p.reserved {
		p.at, p.reserved = time.Time{}, false
		return true
	}
	p.keepUp(now, settings)
	if p.limit.AllowN(now, 1) {
		p.at = time.Time{}
		return true
	}
	reservation := p.limit.ReserveN(now, 1)
	if d := reservation.DelayFrom(now); d <= maxRateAge {
		p.at, p.reserved = now.Add(d+p.jitter(maxJitter)), true
		return false
	}
	reservation.CancelAt(now)
	p.at = now.Add(maxRateAge)
	return false
}

// keepUp applies the current settings.
func (p *pace) keepUp(now time.Time, settings store.ShardSettings) {
	if r := rate.Limit(settings.CreateRate); r != p.limit.Limit() {
		p.limit.SetLimitAt(now, r)
	}
	if b := burst(settings); b != p.limit.Burst() {
		p.limit.SetBurstAt(now, b)
	}
}
