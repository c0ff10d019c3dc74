package gateway

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/guard"
)

// unreadFor is how long an agent may leave unread what is said to it. It has room for some thousand acknowledgements.
const unreadFor = 10 * time.Second

// errUnread: an agent does not read.
var errUnread = errors.New("it does not read what it is told")

// patient is a stream on which nothing is waited with for ever. A Send to an agent that does not read returns when its connection is closed, and not
// before: so that is what is done.
type patient struct {
	agentStream
	waits *sync.Pool // of *wait, of all streams: few are waited with at the same time
	over  atomic.Bool
}

// wait is for one Send after another.
type wait struct {
	with  atomic.Pointer[patient]
	timer *time.Timer // runs out when it was waited for long enough
}

// Send says something, or fails. It is for whoever talks.
func (p *patient) Send(msg *protocol.GatewayMessage) error {
	w, _ := p.waits.Get().(*wait)
	if w == nil {
		w = &wait{}
		w.with.Store(p)
		w.timer = time.AfterFunc(unreadFor, w.end)
	} else {
		w.with.Store(p)
		w.timer.Reset(unreadFor)
	}
	defer w.done(p.waits)
	if err := p.agentStream.Send(msg); err != nil {
		if p.over.Load() {
			return errUnread
		}
		return err
	}
	return nil
}

// end ends the waiting.
func (w *wait) end() {
	p := w.with.Load()
	p.over.Store(true)
	cut(p.Context(), errUnread)
}

// done says that it need not be waited any more.
func (w *wait) done(waits *sync.Pool) {
	if w.timer.Stop() { // else it ends the waiting at this moment
		w.with.Store(nil)
		waits.Put(w)
	}
}

// cut closes an agent's connection.
func cut(ctx context.Context, why error) { guard.Cut(ctx, why.Error()) }
