package cloud

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/tests/stage/swarm"
)

// lie is one that is told now.
type lie struct {
	swarm.Lie
	before []provider.Machine // what was true when it began
	told   int
}

// Lie has List lie from now on, until it is lifted or used up, or another lie begins. A delay is
// how long an answer is on its way: what it says was true when it was asked for.
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

// bend makes a true answer what the lie of the hour makes of it, and says which that is.
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
