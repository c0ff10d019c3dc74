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
}

// Send says something, or fails.
func (p *patient) Send(msg *protocol.GatewayMessage) error {
	ctx := p.Context()
	late := time.AfterFunc(unreadFor, func() {
		p.over.Store(true)
		cut(ctx, errUnread)
	})
	defer late.Stop()
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
