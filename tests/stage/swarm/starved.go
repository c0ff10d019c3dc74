package swarm

import (
	"context"
	"sync"
	"time"
)

// probeEvery is how often a swarm looks whether it gets to run.
const probeEvery = 50 * time.Millisecond

// starved is the longest time for which the process of the agents did not get to run, though it
// wanted to: on a machine that is busy with other work agents are late for a reason of their own.
type starved struct {
	mu      sync.Mutex
	longest time.Duration
}

// probe measures until ctx ends.
func (s *starved) probe(ctx context.Context) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		s.mu.Lock()
		s.longest = max(s.longest, now.Sub(last)-probeEvery)
		s.mu.Unlock()
		last = now
	}
}

// Starved returns the longest time for which the agents' process did not get to run, since it was
// asked last or began.
func (c *Control) Starved() (time.Duration, error) {
	var longest time.Duration
	err := c.client.Call("Control.Starved", false, &longest)
	return longest, err
}

func (v *service) Starved(_ bool, longest *time.Duration) error {
	s := &v.s.starved
	s.mu.Lock()
	defer s.mu.Unlock()
	*longest, s.longest = s.longest, 0
	return nil
}
