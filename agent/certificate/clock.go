package certificate

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// clock estimates the coordinators' time. A machine's clock may be wrong by years, and its agent
// must still be able to reconnect (SAFE-13). So certificates are also checked against the last time
// received from a coordinator.
type clock struct {
	told time.Time // zero: none was received
	at   time.Time // when, by our own clock
	live bool      // received in this run; else read from disk, and of unknown age
}

// tell records the time that a coordinator has just sent.
func (c *clock) tell(told, now time.Time) { *c = clock{told: told.Round(0), at: now, live: true} }

// now returns the coordinators' time if one was received in this run, else the machine's time.
func (c clock) now(now time.Time) time.Time {
	if !c.live {
		return now
	}
	return c.told.Add(now.Sub(c.at))
}

// times returns every time that it may be now. A time read from disk is of unknown age, but may
// still be right where the machine's clock is wrong.
func (c clock) times(now time.Time) []time.Time {
	if c.told.IsZero() {
		return []time.Time{now}
	}
	return []time.Time{now, c.told.Add(now.Sub(c.at))}
}

// Now returns the coordinators' time if one was received in this run, else the machine's.
func (h *Holder) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clock.now(time.Now())
}

// Tell records a coordinator's time.
func (h *Holder) Tell(told *timestamppb.Timestamp) {
	if !told.IsValid() || told.AsTime().IsZero() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock.tell(told.AsTime(), time.Now())
}
