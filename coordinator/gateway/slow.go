package gateway

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/door"
)

// unreadFor is how long an agent may leave unread what is said to it. It has room for some thousand acknowledgements.
const unreadFor = 10 * time.Second

// errUnread: an agent does not read.
var errUnread = errors.New("it does not read what it is told")

// patient is a stream on which nothing is waited with for ever. A Send to an agent that does not read returns when its connection is closed, and not
// before: so that is what is done.
type patient struct {
	agentStream
	over atomic.Bool
	late *time.Timer // of the Send under way
}

// Send says something, or fails. It is for whoever talks.
func (p *patient) Send(msg *protocol.GatewayMessage) error {
	if p.late == nil {
		ctx := p.Context()
		p.late = time.AfterFunc(unreadFor, func() {
			p.over.Store(true)
			cut(ctx, errUnread)
		})
	} else {
		p.late.Reset(unreadFor)
	}
	defer p.late.Stop()
	if err := p.agentStream.Send(msg); err != nil {
		if p.over.Load() {
			return errUnread
		}
		return err
	}
	return nil
}

// cut closes an agent's connection.
func cut(ctx context.Context, why error) { door.Cut(ctx, why.Error()) }
