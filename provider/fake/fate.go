package fake

import (
	"errors"
	"time"

	"github.com/leasehold/leasehold/provider"
)

var (
	// ErrTimeout is the answer of a call that took too long.
	ErrTimeout = errors.New("the call timed out")
	// ErrTrouble is the answer of a call that fails for no reason that the caller could name.
	ErrTrouble = errors.New("the provider has trouble")
)

// happens reports whether something does that does so many times in a hundred.
func (c *Cloud) happens(percent int) bool {
	return percent > 0 && c.world.Chance != nil && c.world.Chance.IntN(100) < percent
}

// within is a length of time in a range.
func (c *Cloud) within(r Range) time.Duration {
	if r.To <= r.From {
		return r.From
	}
	return r.From + c.upTo(r.To-r.From)
}

// upTo is a length of time from nothing to the one given.
func (c *Cloud) upTo(most time.Duration) time.Duration {
	if most <= 0 || c.world.Chance == nil {
		return max(0, most)
	}
	return time.Duration(c.world.Chance.Int64N(int64(most) + 1))
}

// draw is one of so many numbers, from 0.
func (c *Cloud) draw(n int) int {
	if c.world.Chance == nil {
		return c.odds.IntN(n)
	}
	return c.world.Chance.IntN(n)
}

// outcome is what fate has in store for a call.
type outcome struct {
	takes   time.Duration // until its answer
	effect  time.Duration // until it does what it does
	err     error
	without bool          // it has no effect
	final   bool          // err is the answer, whatever its effect is
	never   bool          // it is not answered
	late    bool          // its effect comes after it has ended
	lag     time.Duration // so long after
}

// fate draws the outcome of a call that may take no longer than a time.
func (c *Cloud) fate(call Call, instance string, most time.Duration) outcome {
	o := outcome{takes: c.within(c.cfg.Call)}
	f := c.take(call, instance)
	switch now := c.now(); {
	case f != nil:
		o.takes += f.Delay
		o.err, o.never, o.final = f.Err, f.Hang, f.Hang
		if f.Hang || f.Err != nil {
			o.without, o.late, o.lag = f.Effect == EffectNone, f.Effect == EffectLate, f.Late
		}
	case now.Before(c.throttled) || c.happens(c.cfg.Throttled):
		o.err, o.without = provider.ThrottledFor(time.Second+c.upTo(5*time.Second)), true
	case now.Before(c.fails) || c.happens(c.cfg.Fails):
		o.err, o.without = ErrTrouble, c.happens(50)
	}
	if c.now().Before(c.slow) {
		o.takes = most/2 + c.upTo(most)
	}
	o.effect = c.upTo(o.takes)
	if most > 0 && o.takes >= most {
		o.takes, o.err, o.final = most, ErrTimeout, true
		o.effect = min(o.effect, most) // what it began may happen to the last moment
	}
	return o
}

// begin has a call have its outcome.
func (c *Cloud) begin(o outcome, effect func() error, answer func(error)) (giveUp func()) {
	over := false // the call has been answered or given up
	end := func() {
		over = true
		if o.late {
			c.world.Clock.After(o.lag, func() { _ = effect() }) // how it went is not learnt
		}
	}
	c.world.Clock.After(o.effect, func() {
		if over {
			return
		}
		err := o.err
		if !o.without && !o.late {
			if failed := effect(); failed != nil && !o.final {
				err = failed
			}
		}
		if o.never {
			return
		}
		c.world.Clock.After(o.takes-o.effect, func() {
			if !over {
				end()
				answer(err)
			}
		})
	})
	return func() {
		if !over {
			end()
		}
	}
}

// FailUntil has every call fail, ThrottleUntil be throttled, and SlowUntil take as long as it may
// or longer, before a time.
func (c *Cloud) FailUntil(t time.Time) { c.fails = t }

// ThrottleUntil has every call be throttled before a time.
func (c *Cloud) ThrottleUntil(t time.Time) { c.throttled = t }

// SlowUntil has every call take as long as it may, or longer, before a time.
func (c *Cloud) SlowUntil(t time.Time) { c.slow = t }

// Calm ends all trouble of the cloud, also the troubles that it was configured with. Effects that
// are late still come.
func (c *Cloud) Calm() {
	c.Heal()
	c.fails, c.throttled, c.slow = time.Time{}, time.Time{}, time.Time{}
	c.cfg.Fails, c.cfg.Throttled, c.cfg.ListFails = 0, 0, 0
	for _, z := range c.zones {
		z.Full, z.NoSpot, z.Lost = false, false, false
	}
}
