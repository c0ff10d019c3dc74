package guard

import (
	"time"

	"golang.org/x/time/rate"
)

// How fast one agent may send.
const (
	messageRate  = 20      // messages a second: more than many checks that change all the time cause
	messageBurst = 100     // messages at once
	byteRate     = 2 << 20 // bytes a second: more than such reports with the workload's last output in each
	byteBurst    = 8 << 20
	floodTime    = 30 * time.Second // how long an agent may exceed these rates; its messages wait meanwhile

	renewalRate   = 1  // certificates a second; certificates that last for seconds are for tests
	renewalBurst  = 5  // certificates at once
	maxHastyInRow = 30 // early renewals in a row, before they count as a violation
)

// RateState is the rate state of one stream: how many messages and bytes an agent has sent lately.
// It is a value, so that a session needs no further allocation. The zero value is not ready: call
// Init.
type RateState struct {
	Messages, Bytes rate.Limiter
	exceededSince   time.Time // zero if the agent keeps within the rates
}

// Init sets the rates.
func (s *RateState) Init() {
	initLimiter(&s.Messages, messageRate, messageBurst)
	initLimiter(&s.Bytes, byteRate, byteBurst)
}

// initLimiter initializes a limiter in place with a full bucket.
func initLimiter(l *rate.Limiter, each rate.Limit, burst int) {
	l.SetLimitAt(time.Time{}, each)
	l.SetBurstAt(time.Time{}, burst)
}

// Take counts a message and returns how long to wait before the next one is read, and [Flood] if
// the agent has exceeded the rates for too long.
func (s *RateState) Take(now time.Time, bytes int) (time.Duration, error) {
	wait := max(
		s.Messages.ReserveN(now, 1).DelayFrom(now),
		s.Bytes.ReserveN(now, min(bytes, byteBurst)).DelayFrom(now),
	)
	switch {
	case wait == 0:
		s.exceededSince = time.Time{}
	case s.exceededSince.IsZero():
		s.exceededSince = now
	case now.Sub(s.exceededSince) >= floodTime:
		return wait, Flood
	}
	return wait, nil
}

// RenewalState is the rate state of one stream's requests for certificates. Call Init before use.
type RenewalState struct {
	limiter rate.Limiter
	hasty   int // requests in a row that came too soon
}

// Init sets the rate.
func (s *RenewalState) Init() { initLimiter(&s.limiter, renewalRate, renewalBurst) }

// Take counts a request and returns how long to wait before anything else is read, and
// [FrequentRenewals] if requests keep coming too soon.
func (s *RenewalState) Take() (time.Duration, error) {
	wait := s.limiter.Reserve().Delay()
	if wait == 0 {
		s.hasty = 0
		return 0, nil
	}
	if s.hasty++; s.hasty > maxHastyInRow {
		return wait, FrequentRenewals
	}
	return wait, nil
}
