package guard

import (
	"container/list"
	"context"
	"net"
	"time"

	"google.golang.org/grpc/peer"
)

type state int

const (
	fresh state = iota
	unfinished
	nameless
	named
	gone
)

// caller is a connection that came through the door.
type caller struct {
	net.Conn
	door  *Door
	place string
	left  chan struct{} // closed when the door has forgotten him
	clock *time.Timer   // ends the time that his state has

	// The door's, under its lock.
	state         state
	since         time.Time // of the state
	name          string
	why           string // he had to go
	inAll, inEach *list.Element

	// The handshake's, which is one goroutine.
	shaking bool
	turn    bool // it computes
	begun   bool // it has had a turn
}

// Close forgets the caller, too.
func (c *caller) Close() error {
	c.door.mu.Lock()
	if c.state != gone && c.state != fresh {
		c.door.drop(c, "closed")
	}
	c.door.mu.Unlock()
	return c.Conn.Close()
}

// Read gives the turn of a handshake back while it waits for the caller.
func (c *caller) Read(p []byte) (int, error) {
	if !c.shaking {
		return c.Conn.Read(p)
	}
	c.rest()
	n, err := c.Conn.Read(p)
	if err == nil && !c.compute() {
		return 0, net.ErrClosed
	}
	return n, err
}

// Write bounds how long the caller may leave unread what is sent to him. Else one who only sends is never noticed: gRPC sends its pings
// to those who are silent.
func (c *caller) Write(p []byte) (int, error) {
	if !c.shaking {
		_ = c.SetWriteDeadline(time.Now().Add(c.door.bounds.Unread)) // a connection that is closed fails below
	}
	return c.Conn.Write(p)
}

// compute waits for a turn. Who has waited so long for his first that the handshake will hardly end in time is turned away, before anything is computed in
// vain: when thousands come at once, those who are let in are to get through.
func (c *caller) compute() bool {
	if c.turn {
		return true
	}
	asked := time.Now()
	if !c.door.turns.take(c.place, c.begun, c.left) {
		return false
	}
	if !c.begun && time.Since(asked) > c.door.bounds.Handshake/2 {
		c.door.turns.give()
		c.door.giveUpOn(c)
		return false
	}
	c.turn = true
	if !c.begun {
		c.begun = true
		c.door.answers(c)
	}
	return true
}

// rest gives the turn back.
func (c *caller) rest() {
	if c.turn {
		c.turn = false
		c.door.turns.give()
	}
}

// address is where a caller is. It leads back to him from a stream of his, whatever is between.
type address struct {
	net.Addr
	caller *caller
}

// RemoteAddr is where the caller is.
func (c *caller) RemoteAddr() net.Addr { return address{c.Conn.RemoteAddr(), c} }

// Cut closes the connection on which a stream or call is served, of which this is the context: a Send that waits for the caller to read
// does not return otherwise. It does nothing where the connection came through no door.
func Cut(ctx context.Context, why string) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return
	}
	a, ok := p.Addr.(address)
	if !ok {
		return
	}
	c := a.caller
	c.door.mu.Lock()
	was := c.state
	if was != gone {
		c.door.drop(c, why)
	}
	c.door.mu.Unlock()
	if was != gone {
		c.door.turnAway(c)
	}
}
