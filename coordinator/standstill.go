package coordinator

import (
	"context"
	"sync"
	"time"
)

const (
	pulseEvery = time.Second
	// pulseLate is how late a pulse must be to show that this process was paused or starved.
	pulseLate = time.Second
)

// pulse distinguishes a process that stood still from an etcd that did not answer: a waiting caller
// cannot tell them apart.
type pulse struct {
	mu    sync.Mutex
	last  time.Time
	late  time.Duration // the delay of the last late pulse
	ended time.Time     // when it came
}

// run beats until ctx ends.
func (p *pulse) run(ctx context.Context) {
	tick := time.NewTicker(pulseEvery)
	defer tick.Stop()
	p.beat()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.beat()
		}
	}
}

func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if gap := now.Sub(p.last); !p.last.IsZero() && gap >= pulseEvery+pulseLate {
		p.late, p.ended = gap, now
	}
	p.last = now
}

// stoodStill returns the longest standstill of this process since a time; 0 if there was none.
func (p *pulse) stoodStill(since time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if gap := time.Since(p.last); !p.last.IsZero() && gap >= pulseEvery+pulseLate {
		return gap // the next pulse has not come yet
	}
	if p.ended.Before(since) {
		return 0
	}
	return p.late
}
