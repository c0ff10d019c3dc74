package evidence

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// owner is a record with timers: its kind, its name, or its group and number.
type owner struct {
	kind, name string
	number     int
}

// running is a record's timer, and when it ends on our clock.
type running struct {
	timer store.Timer
	at    time.Time
}

// seeTimers records the timers of a record. A timer that is running continues.
func (e *Evidence) seeTimers(o owner, timers []store.NamedTimer, first bool) {
	if len(timers) == 0 {
		delete(e.timers, o)
		return
	}
	before, after := e.timers[o], make(map[string]running, len(timers))
	for _, t := range timers {
		r, known := before[t.Name]
		if !known || r.timer != t.Timer {
			now := e.cfg.Now()
			r = running{timer: t.Timer, at: now.Add(e.left(t, now, first))}
		}
		after[t.Name] = r
	}
	e.timers[o] = after
}

// left returns the remaining time of a timer. We see our own timers as they begin; an earlier
// leader may have begun the timers of our first listing, which continue with their remaining time.
func (e *Evidence) left(t store.NamedTimer, now time.Time, first bool) time.Duration {
	whole := t.Timer.For.D()
	if !first {
		return whole
	}
	passed := now.UTC().Sub(t.Timer.Start)
	if t.Name == store.TimerProgress || t.Name == store.TimerBlame {
		passed = e.led(t.Timer.Start, now)
	}
	return min(whole, max(0, whole-passed))
}

// led returns how long leaders were working since a time in a record (SAFE-13), by wall clocks: a
// wrong clock can only lengthen a wait, or end it after our first grace.
func (e *Evidence) led(since, now time.Time) time.Duration {
	led := now.UTC().Sub(since)
	for _, gap := range e.gaps {
		led -= gap.Within(since)
	}
	return max(0, led)
}

// dropTimers forgets the timers of records that are gone.
func (e *Evidence) dropTimers(c *cache.Content) {
	for o := range e.timers {
		there := false
		switch o.kind {
		case store.KindInstances:
			_, there = c.Instances[o.name]
		case store.KindStatus:
			_, there = c.Status[o.name]
		case store.KindSlots:
			_, there = c.Slots[o.name][o.number]
		}
		if !there {
			delete(e.timers, o)
		}
	}
}

// dueOf says when the timers of a record end; nil if it has none.
func (e *Evidence) dueOf(o owner) plan.Due {
	timers := e.timers[o]
	if len(timers) == 0 {
		return nil
	}
	due := make(plan.Due, len(timers))
	for name, r := range timers {
		due[name] = r.at
	}
	return due
}

const (
	maxGaps  = 100
	gapsKept = 25 * time.Hour // the longest timer that pauses in gaps is a day's
)

// gapsUntil adds to the gaps in a record the one between its time and now.
func gapsUntil(s store.Served, now time.Time) []store.Gap {
	var gaps []store.Gap
	for _, gap := range s.Gaps {
		if now.Sub(gap.To) < gapsKept {
			gaps = append(gaps, gap)
		}
	}
	if s.At.Before(now) {
		gaps = append(gaps, store.Gap{From: s.At, To: now})
	}
	return gaps[max(0, len(gaps)-maxGaps):]
}

// ServedGaps returns the gaps to be written down for the next leader.
func (e *Evidence) ServedGaps() []store.Gap {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.gaps
}
