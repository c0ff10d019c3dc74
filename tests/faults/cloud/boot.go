package cloud

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// maxOrder bounds how long a restarting machine may take to go down in order.
const maxOrder = 10 * time.Second

// live is one boot of a machine.
func (c *Cloud) live(ctx context.Context, boot fake.Boot) {
	m := c.begin(boot)
	if m == nil || ctx.Err() != nil {
		if m != nil {
			c.finish(m, "")
		}
		return
	}
	watch, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		c.watchWorkload(watch, m)
	}()
	why := c.run(ctx, m)
	stop()
	<-watched
	c.killAll(m)
	if c.brokeDown(m.id) {
		c.failed("the agent of %s broke down: see %s", m.id, c.logOf(m.id))
	}
	c.finish(m, why)
	if why == history.BySelf {
		boot.Exit("its agent has ended")
	}
}

// run runs the agent while the machine is up, and returns why it no longer is.
func (c *Cloud) run(ctx context.Context, m *machine) string {
	for {
		a, err := c.startAgent(ctx, m)
		switch {
		case ctx.Err() != nil && err != nil:
			return c.bringDown(ctx, m, nil)
		case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EROFS):
			// its disk is full, or read-only: it boots when that is over
		case err != nil:
			c.failed("machine %s: %v", m.id, err)
			return history.BySelf
		default:
			select {
			case <-ctx.Done():
				return c.bringDown(ctx, m, a)
			case <-a.Ended():
			}
			if a.killed.Load() {
				break
			}
			if a.State().Success() {
				return history.BySelf
			}
			c.failed("the agent of %s has ended by itself (%s): see %s", m.id, a.State(), c.logOf(m.id))
		}
		again := time.NewTimer(c.cfg.AgentAgain)
		select {
		case <-ctx.Done():
			again.Stop()
			return c.bringDown(ctx, m, nil)
		case <-again.C:
		}
	}
}

// bringDown stops a machine as its cloud does: in order if there is time, like an operating system
// that shuts down. What is left is killed later.
func (c *Cloud) bringDown(ctx context.Context, m *machine, a *agent) string {
	var down *fake.Down
	if !errors.As(context.Cause(ctx), &down) {
		return history.ByEnd
	}
	why, within := history.ByCall, time.Duration(0)
	switch down.By {
	case fake.CallStop:
		within = down.Within - killWait
	case fake.CallRestart:
		if d, err := time.ParseDuration(m.boot.Bootstrap.StopTimeout); err == nil {
			within = min(d, maxOrder)
		}
	case "":
		why = history.ByFault
	default: // it is deleted
	}
	if a == nil || within <= 0 {
		return why
	}
	a.terminate()
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case <-a.Ended():
	case <-late.C:
	case <-m.hurry:
	case <-c.base.Done():
	}
	return why
}
