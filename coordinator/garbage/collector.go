package garbage

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	look      = 200 * time.Millisecond // interval for looking at the heap
	lookAgain = 10 * time.Millisecond  // the same during a collection
	maxWait   = 3 * time.Second        // less than the six seconds of a handshake
)

// Sizes of a heap, in live bytes.
const (
	large = 64 << 20  // smaller heaps are marked in no time
	huge  = 640 << 20 // larger heaps take half a second or more, and are collected more rarely for more memory
)

// How much may be allocated before the next collection has ended, in percent of the live heap. Go
// begins it at seven tenths of that at the earliest, we at two thirds. Memory beyond it is returned
// to the system.
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

// Collector collects a process's garbage. There is one per process.
type Collector struct {
	heap heap
	log  *slog.Logger

	mu   sync.Mutex
	gate chan struct{} // nil: open
}

// New returns a collector that does nothing until Run.
func New(log *slog.Logger) *Collector { return &Collector{heap: goHeap{}, log: log} }

// Run collects until ctx ends. bearable returns for how long reports may wait.
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
			give(room(s.kept)) // it changes the goal
		} else if s.kept >= large && due(s) {
			c.collect(ctx, min(bearable(), maxWait))
		}
	}
}

// due reports whether to begin a collection, before Go begins one.
func due(s size) bool { return s.goal > s.kept && s.now >= s.kept+(s.goal-s.kept)/3*2 }

// collect runs a collection. Reports wait until its mark phase has ended, or for most.
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
	<-done // the sweep runs beside everything else
	c.log.Debug("garbage collected", "reports_waited", waited, "took", time.Since(began))
}

// found waits until the mark phase of the next collection has ended.
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

// closed returns a channel to wait for; nil: none.
func (c *Collector) closed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gate
}
