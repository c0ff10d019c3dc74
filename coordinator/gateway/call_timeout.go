package gateway

import (
	"context"
	"sync"
	"time"
)

// shortCall is the duration of a call that needs no timeout. The timeout and the end of the
// caller's context take effect only after it.
const shortCall = 50 * time.Millisecond

// callTimeouts bounds calls as context.WithTimeout does, for calls as frequent as renewals. It
// reuses contexts and timers of short calls, which nearly all are.
type callTimeouts struct {
	life context.Context //nolint:containedctx // the parent of all calls

	mu   sync.Mutex
	free []*boundedCall
}

// boundedCall bounds one call.
type boundedCall struct {
	ctx    context.Context //nolint:containedctx // it is used again
	cancel context.CancelFunc
	timer  *time.Timer

	mu     sync.Mutex
	caller context.Context //nolint:containedctx // when it ends, the call ends
	left   time.Duration   // for the call beyond shortCall
	stop   func() bool     // stops waiting for the caller's end; nil: the call has been short so far
	over   bool
}

// begin returns a boundedCall that ends after timeout or with caller. The caller must pass it to
// end.
func (t *callTimeouts) begin(caller context.Context, timeout time.Duration) *boundedCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := len(t.free) - 1
	if last < 0 {
		c := &boundedCall{caller: caller, left: timeout - shortCall}
		c.ctx, c.cancel = context.WithCancel(t.life)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.timer = time.AfterFunc(shortCall, c.expire)
		return c
	}
	c := t.free[last]
	t.free[last] = nil
	t.free = t.free[:last]
	c.caller, c.left = caller, timeout-shortCall
	c.timer.Reset(shortCall)
	return c
}

// expire runs first when the call is no longer short, and again when its time is over.
func (c *boundedCall) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over:
	case c.stop != nil:
		c.cancel()
	default:
		c.stop = context.AfterFunc(c.caller, c.cancel)
		c.timer.Reset(c.left)
	}
}

// end is called when the call has returned.
func (t *callTimeouts) end(c *boundedCall) {
	if c.finish() {
		c.caller = nil
		t.mu.Lock()
		defer t.mu.Unlock()
		t.free = append(t.free, c)
	}
}

// finish stops the timer and reports whether the call was short. Only then can c be used again.
func (c *boundedCall) finish() bool {
	inTime := c.timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	if inTime && c.stop == nil {
		return true
	}
	c.over = true
	if c.stop != nil {
		c.stop()
	}
	c.cancel()
	return false
}
