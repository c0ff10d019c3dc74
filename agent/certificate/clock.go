package certificate

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// clock is the coordinators' time as far as it is known here. The clock of a machine may be wrong
// by years, and its agent must find back to its coordinators all the same (SAFE-13). So
// certificates are held against the time that a coordinator has told, too.
type clock struct {
	told time.Time // zero: nobody has
	at   time.Time // when, by our own clock
	live bool      // in this run; else it was written down earlier, and it may be much later by now
}

// tell takes over a time that a coordinator has told just now.
func (c *clock) tell(told, now time.Time) { *c = clock{told: told.Round(0), at: now, live: true} }

// now is the coordinators' time, if one has told it in this run, else that of this machine.
func (c clock) now(now time.Time) time.Time {
	if !c.live {
		return now
	}
	return c.told.Add(now.Sub(c.at))
}

// times are those that it may be now. Of a time that was written down nobody knows how long ago
// that was: it may still be right where the clock of the machine is wrong.
func (c clock) times(now time.Time) []time.Time {
	if c.told.IsZero() {
		return []time.Time{now}
	}
	return []time.Time{now, c.told.Add(now.Sub(c.at))}
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
