package garbage

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	look      = 200 * time.Millisecond // how often the heap is looked at
	lookAgain = 10 * time.Millisecond  // likewise, while a collection is under way
	mostWait  = 3 * time.Second        // a handshake has six
)

// How large a heap is, in bytes that are kept.
const (
	large = 64 << 20  // what is smaller is looked through in no time
	huge  = 640 << 20 // what is larger takes half a second or more: so that is done more rarely, for more memory
)

// What may be made before the next collection is through, in percent of what is kept: Go begins it
// at seven tenths of that at the earliest, we at two thirds. Memory beyond it goes back to the
// system.
const (
	roomSmall = 100 // Go's own
	roomLarge = 50
	roomHuge  = 225
)

func room(kept uint64) int {
	switch {
	case kept < large:
		return roomSmall
	case kept < huge:
		return roomLarge
	default:
		return roomHuge
	}
}

// Collector collects a process's garbage. There is one in a process.
type Collector struct {
	heap heap
	log  *slog.Logger

	mu   sync.Mutex
	gate chan struct{} // nil: open
}

// New makes a collector that does nothing yet.
func New(log *slog.Logger) *Collector { return &Collector{heap: goHeap{}, log: log} }

// Run collects until ctx ends. bearable says for how long reports may wait.
func (c *Collector) Run(ctx context.Context, bearable func() time.Duration) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	given := roomSmall
	give := func(now int) {
		if now != given {
			given = now
			c.heap.give(now)
		}
	}
	defer give(roomSmall)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s := c.heap.size()
		if given != room(s.kept) {
			give(room(s.kept)) // which changes the goal
		} else if s.kept >= large && due(s) {
			c.collect(ctx, min(bearable(), mostWait))
		}
	}
}

// due reports whether a collection is to be begun, before Go begins one.
func due(s size) bool { return s.goal > s.kept && s.now >= s.kept+(s.goal-s.kept)/3*2 }

// collect has all garbage collected, and reports wait until what is kept has been found, or for
// most.
func (c *Collector) collect(ctx context.Context, most time.Duration) {
	began, before := time.Now(), c.heap.collections()
	c.shut()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.heap.collect()
	}()
	c.found(ctx, before, most)
	c.open()
	waited := time.Since(began)
	<-done // what is not kept is given back beside everything else
	c.log.Debug("garbage collected", "reports_waited", waited, "took", time.Since(began))
}

// found waits until another collection than before has found what is kept.
func (c *Collector) found(ctx context.Context, before uint64, most time.Duration) {
	over := time.NewTimer(most)
	defer over.Stop()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for c.heap.collections() == before {
		select {
		case <-ctx.Done():
			return
		case <-over.C:
			return
		case <-tick.C:
		}
	}
}

func (c *Collector) shut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gate = make(chan struct{})
}

func (c *Collector) open() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.gate)
	c.gate = nil
}

// closed is what to wait for; nil: nothing.
func (c *Collector) closed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gate
}
