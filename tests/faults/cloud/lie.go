package cloud

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/tests/stage/swarm"
)

// lie is the present wrong answer of List.
type lie struct {
	swarm.Lie
	before []provider.Machine // the correct answer when it began
	told   int
}

// Lie makes List answer wrongly from now on, until the lie is lifted or used up, or another one
// begins. delay is how long an answer takes: it is computed before the delay.
func (c *Cloud) Lie(l swarm.Lie) (lift func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := &lie{Lie: l}
	c.lie = now
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.lie == now {
			c.lie = nil
		}
	}
}

// bend converts a correct answer to the present lie, and returns its kind.
func (c *Cloud) bend(ctx context.Context, truth []provider.Machine) (answer []provider.Machine, kind string,
	err error,
) {
	c.mu.Lock()
	l := c.lie
	if l == nil {
		c.mu.Unlock()
		return truth, "", nil
	}
	if l.told == 0 {
		l.before = truth
	}
	if l.told++; l.told == l.Times {
		c.lie = nil
	}
	answer = l.Apply(truth, l.before)
	c.mu.Unlock()
	if l.Delay > 0 {
		t := time.NewTimer(l.Delay)
		defer t.Stop()
		select {
		case <-ctx.Done():
			return nil, string(l.Kind), ctx.Err()
		case <-t.C:
		}
	}
	return answer, string(l.Kind), nil
}
