package memstore

import (
	"container/heap"
	"sync"
	"time"
)

// Clock is the time by which leases end and watches send their progress.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f once, d from now.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a call that is due.
type Timer interface {
	// Stop prevents the call. It is false if the call was made, or is being made.
	Stop() bool
}

// RealClock is the time package's clock, or the bubble's inside testing/synctest.
type RealClock struct{}

// Now is time.Now.
func (RealClock) Now() time.Time { return time.Now() }

// AfterFunc is time.AfterFunc.
func (RealClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// ManualClock moves only when Advance is called. For simulations: what is due at one time is
// called in the order in which it was asked for, so that a run can be repeated exactly.
type ManualClock struct {
	mu    sync.Mutex
	now   time.Time
	asked uint64
	due   dueCalls
}

// NewManualClock makes a clock that shows start.
func NewManualClock(start time.Time) *ManualClock { return &ManualClock{now: start} }

// Now returns the time that the clock shows.
func (c *ManualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc has f called by the Advance that reaches d from now.
func (c *ManualClock) AfterFunc(d time.Duration, f func()) Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	call := &dueCall{clock: c, at: c.now.Add(max(d, 0)), asked: c.asked, f: f}
	heap.Push(&c.due, call)
	return call
}

// Advance moves the clock by d. It makes every call that becomes due, in order and with the clock
// at the time of each, calls that those ask for included, and returns when all have returned.
func (c *ManualClock) Advance(d time.Duration) {
	c.mu.Lock()
	end := c.now.Add(d)
	for len(c.due) > 0 && !c.due[0].at.After(end) {
		call := heap.Pop(&c.due).(*dueCall) //nolint:errcheck // AfterFunc puts in nothing else
		if call.at.After(c.now) {
			c.now = call.at
		}
		c.mu.Unlock()
		call.f() // unlocked: it may read the clock, and ask for more calls
		c.mu.Lock()
	}
	if end.After(c.now) {
		c.now = end
	}
	c.mu.Unlock()
}

// dueCall is a call that a ManualClock owes.
type dueCall struct {
	clock *ManualClock
	at    time.Time
	asked uint64 // in which order, among those due at one time
	f     func()
	index int // in the heap, -1 when no longer in it
}

func (d *dueCall) Stop() bool {
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	if d.index < 0 {
		return false
	}
	heap.Remove(&d.clock.due, d.index)
	return true
}

// dueCalls is a heap of calls, the next one first.
type dueCalls []*dueCall

func (h dueCalls) Len() int { return len(h) }
func (h dueCalls) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].asked < h[j].asked
}

func (h dueCalls) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *dueCalls) Push(x any) {
	call := x.(*dueCall) //nolint:errcheck // AfterFunc puts in nothing else
	call.index = len(*h)
	*h = append(*h, call)
}

func (h *dueCalls) Pop() any {
	old := *h
	call := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	call.index = -1
	return call
}
