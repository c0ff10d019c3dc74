package gateway

import (
	"context"
	"sync"
	"time"
)

// quick is how long a call takes that needs no bounds. Only of one that takes longer it is noticed that whoever it is for has gone.
const quick = 50 * time.Millisecond

// limits bound one call after another, as context.WithTimeout does; but what that makes anew for each call is used again, by whoever calls next, until a call
// was not quick.
type limits struct {
	life context.Context //nolint:containedctx // in which all calls are made

	mu   sync.Mutex
	free []*limit
}

// limit bounds a call.
type limit struct {
	ctx    context.Context //nolint:containedctx // it is what is used again
	cancel context.CancelFunc
	timer  *time.Timer

	mu   sync.Mutex
	of   context.Context //nolint:containedctx // when it ends, so does the call
	left time.Duration   // for the call, once it was not quick
	stop func() bool     // has the end of that not be looked for; nil: the call is quick so far
	over bool
}

// begin is the limit of a call that may take so long, or until a context ends. End must be called with it.
func (l *limits) begin(of context.Context, most time.Duration) *limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.free) - 1
	if last < 0 {
		one := &limit{of: of, left: most - quick}
		one.ctx, one.cancel = context.WithCancel(l.life)
		one.mu.Lock()
		defer one.mu.Unlock()
		one.timer = time.AfterFunc(quick, one.late)
		return one
	}
	one := l.free[last]
	l.free[last] = nil
	l.free = l.free[:last]
	one.of, one.left = of, most-quick
	one.timer.Reset(quick)
	return one
}

// late bounds a call that is not quick, and ends it when it comes for the second time.
func (l *limit) late() {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over:
	case l.stop != nil:
		l.cancel()
	default:
		l.stop = context.AfterFunc(l.of, l.cancel)
		l.timer.Reset(l.left)
	}
}

// end says that the call is over.
func (l *limits) end(one *limit) {
	if one.quick() {
		one.of = nil
		l.mu.Lock()
		defer l.mu.Unlock()
		l.free = append(l.free, one)
	}
}

// quick stops the limit, and says whether the call was quick. One that was not cannot be used again.
func (l *limit) quick() bool {
	inTime := l.timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	if inTime && l.stop == nil {
		return true
	}
	l.over = true
	if l.stop != nil {
		l.stop()
	}
	l.cancel()
	return false
}
