package certificate

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// clock estimates the coordinators' time. A machine's clock may be wrong by years, and its agent
// must still be able to reconnect (SAFE-13). So certificates are also checked against the last time
// received from a coordinator.
type clock struct {
	reading
	live bool // received in this run; else read from disk, of unknown age
	// before is the earlier reading that the present one contradicts, and moved is when the
	// contradiction began, by our own clock. Zero: there is none.
	before reading
	moved  time.Time
	// kept is the reading that an earlier run left, against which the first reading of this run is
	// checked. Zero: none.
	kept reading
}

// reading is a coordinator's time.
type reading struct {
	sent time.Time // zero: none was received
	at   time.Time // when it was received, by our own clock
}

// now returns what the coordinator's clock shows now.
func (r reading) now(now time.Time) time.Time { return r.sent.Add(now.Sub(r.at)) }

const (
	// sameTime is the accepted difference between two readings: replicas' clocks differ by seconds.
	sameTime = time.Minute
	// movedFor is how long a reading that contradicts an earlier one must hold before it counts as
	// proof: by then an operator or NTP has corrected a clock that has jumped.
	movedFor = 24 * time.Hour
)

// tell records the time that a coordinator has just sent.
func (c *clock) tell(sent, now time.Time) {
	next := clock{reading: reading{sent.Round(0), now}, live: true}
	differs := func(r reading) bool { return r.now(now).Sub(sent).Abs() > sameTime }
	switch old := c.proven(now); {
	case c.live && differs(old):
		next.before, next.moved = old, c.moved
		if c.moved.IsZero() || differs(c.reading) {
			next.moved = now
		}
	case !c.live && !c.kept.sent.IsZero() && differs(c.kept):
		next.before, next.moved = c.kept, now
	}
	*c = next
}

// keptBy returns the coordinators' time that an earlier run left, as the difference between their
// clock and this machine's when the certificate was issued. It returns zero if the certificate
// would not be valid at that time: then the machine's clock was lost or set meanwhile, and the
// first coordinator is believed.
func keptBy(p papers, now time.Time) reading {
	if p.key == nil || p.issued.IsZero() || p.here.IsZero() {
		return reading{}
	}
	sent := p.issued.Add(now.Round(0).Sub(p.here))
	if sent.Before(p.issued) || sent.After(p.leaf().NotAfter) {
		return reading{}
	}
	return reading{sent: sent, at: now}
}

// proven returns the reading against which a coordinator's time is checked. A coordinator's own
// welcome does not prove its time, so a reading that contradicts an earlier one proves nothing
// until it has held for a day.
func (c clock) proven(now time.Time) reading {
	if !c.moved.IsZero() && now.Sub(c.moved) < movedFor {
		return c.before
	}
	return c.reading
}

// now returns the coordinators' time if one was received in this run, else the machine's time.
func (c clock) now(now time.Time) time.Time {
	if !c.live {
		return now
	}
	return c.reading.now(now)
}

// times returns every time that may be the present one. A time read from disk is of unknown age,
// but may still be right when the machine's clock is wrong.
func (c clock) times(now time.Time) []time.Time {
	if c.sent.IsZero() {
		return []time.Time{now}
	}
	return []time.Time{now, c.reading.now(now)}
}

// Now returns the coordinators' time if one was received in this run, else the machine's.
func (h *Holder) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clock.now(time.Now())
}

// Tell records a coordinator's time.
func (h *Holder) Tell(sent *timestamppb.Timestamp) {
	if !sent.IsValid() || sent.AsTime().IsZero() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock.tell(sent.AsTime(), time.Now())
}
