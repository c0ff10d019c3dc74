package gateway

import (
	"context"
	"time"
)

// limit bounds one call after another, as context.WithTimeout does; but what that makes anew for each call is used again, until a call has taken too long.
// It is for one call at a time.
type limit struct {
	ctx    context.Context //nolint:containedctx // it is what is used again
	cancel context.CancelFunc
	timer  *time.Timer
}

// begin is the context of a call that may take so long. The parent must be the same each time.
func (l *limit) begin(parent context.Context, most time.Duration) context.Context {
	if l.ctx != nil {
		l.timer.Reset(most)
		return l.ctx
	}
	l.ctx, l.cancel = context.WithCancel(parent)
	l.timer = time.AfterFunc(most, l.cancel)
	return l.ctx
}

// end says that the call is over.
func (l *limit) end() {
	if !l.timer.Stop() { // it took too long
		l.ctx = nil
	}
}
