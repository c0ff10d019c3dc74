package gateway

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/guard"
)

// sendTimeout is how long an agent may leave messages unread. Its buffers hold some thousand
// acknowledgements.
const sendTimeout = 10 * time.Second

// errNotRead means that an agent does not read its messages.
var errNotRead = errors.New("it does not read its messages")

// timedStream is a stream whose Send has a timeout. A Send to an agent that does not read returns
// only when its connection is closed, so a timeout closes the connection.
type timedStream struct {
	agentStream
	timers   *sync.Pool // pool of *sendTimer, shared by all streams: few Sends wait at the same time
	timedOut atomic.Bool
}

// sendTimer serves one Send after another.
type sendTimer struct {
	stream atomic.Pointer[timedStream]
	timer  *time.Timer
}

// Send sends a message. s.mu must be held, as for every use of a stream.
func (t *timedStream) Send(msg *protocol.GatewayMessage) error {
	timer, _ := t.timers.Get().(*sendTimer)
	if timer == nil {
		timer = &sendTimer{}
		timer.stream.Store(t)
		timer.timer = time.AfterFunc(sendTimeout, timer.expire)
	} else {
		timer.stream.Store(t)
		timer.timer.Reset(sendTimeout)
	}
	defer timer.stop(t.timers)
	if err := t.agentStream.Send(msg); err != nil {
		if t.timedOut.Load() {
			return errNotRead
		}
		return err
	}
	return nil
}

// expire closes the connection of the stream.
func (t *sendTimer) expire() {
	stream := t.stream.Load()
	stream.timedOut.Store(true)
	guard.CloseConnection(stream.Context(), errNotRead.Error())
}

// stop puts the timer back for the next Send, unless it expires at this moment.
func (t *sendTimer) stop(timers *sync.Pool) {
	if t.timer.Stop() {
		t.stream.Store(nil)
		timers.Put(t)
	}
}
