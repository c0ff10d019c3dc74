package coordinator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
)

const (
	pulseEvery = time.Second
	// pulseLate is how late a pulse must be to show that this process was paused or starved.
	pulseLate = time.Second
)

// pulse distinguishes a process that was paused from an etcd that did not answer: a caller that
// waits cannot tell them apart.
type pulse struct {
	mu    sync.Mutex
	last  time.Time
	late  time.Duration // the delay of the last late pulse
	ended time.Time     // when it came
}

// run measures until ctx ends, and calls late after each pause.
func (p *pulse) run(ctx context.Context, late func(time.Duration)) {
	tick := time.NewTicker(pulseEvery)
	defer tick.Stop()
	p.beat()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if gap := p.beat(); gap > 0 {
				late(gap)
			}
		}
	}
}

// beat returns how long the process has just been paused; 0: it was not.
func (p *pulse) beat() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	gap := now.Sub(p.last)
	if p.last.IsZero() || gap < pulseEvery+pulseLate {
		gap = 0
	} else {
		p.late, p.ended = gap, now
	}
	p.last = now
	return gap
}

// stoodStill handles a standstill of this process, or of the whole machine.
func (r *Replica) stoodStill(gap time.Duration) {
	r.mu.Lock()
	leads := r.term != nil
	r.mu.Unlock()
	if leads && gap > store.LeaderLate {
		r.noteDisturbance(fmt.Sprintf("the leader stood still for %s", gap.Round(100*time.Millisecond)), true)
	}
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
