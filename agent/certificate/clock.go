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
	live bool      // in this run; else it was written down earlier, and it may be much later by now
}

// tell takes over a time that a coordinator has told just now.
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

// Now is the coordinators' time if one was received in this run, else the machine's.
func (p *Holder) Now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clock.now(time.Now())
}

// Tell takes over a coordinator's time.
func (p *Holder) Tell(told *timestamppb.Timestamp) {
	if !told.IsValid() || told.AsTime().IsZero() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clock.tell(told.AsTime(), time.Now())
}
