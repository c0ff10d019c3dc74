package guard

import (
	"container/list"
	"context"
	"net"
	"time"

	"google.golang.org/grpc/peer"
)

type connState int

const (
	stateNew connState = iota
	statePending
	stateAnonymous
	stateNamed
	stateClosed
)

// conn is a connection that the guard counts.
type conn struct {
	net.Conn
	guard   *Connections
	source  string
	removed chan struct{} // closed when the guard no longer counts the connection
	timer   *time.Timer   // ends the time that its state allows

	// Protected by guard.mu.
	state         connState
	since         time.Time // when the state began
	name          string
	why           string // the reason for closing it
	inAll, inEach *list.Element

	// Used only by the goroutine of the handshake.
	handshaking bool
	computing   bool // it holds one of the handshakes' permits
	begun       bool // it has held one
}

// Close also removes the connection from the guard's counts.
func (c *conn) Close() error {
	c.guard.mu.Lock()
	if c.state != stateClosed && c.state != stateNew {
		c.guard.drop(c, "closed")
	}
	c.guard.mu.Unlock()
	return c.Conn.Close()
}

// Read releases the handshake's permit while it waits for the client.
func (c *conn) Read(p []byte) (int, error) {
	if !c.handshaking {
		return c.Conn.Read(p)
	}
	c.release()
	n, err := c.Conn.Read(p)
	if err == nil && !c.acquire() {
		return 0, net.ErrClosed
	}
	return n, err
}

// Write bounds how long the client may leave data unread. Nothing else detects a client that sends
// and never reads: gRPC sends pings only on silent connections.
func (c *conn) Write(p []byte) (int, error) {
	if !c.handshaking {
		// on a closed connection the write fails below
		_ = c.SetWriteDeadline(time.Now().Add(c.guard.bounds.WriteTimeout))
	}
	return c.Conn.Write(p)
}

// acquire waits for a permit to compute. A handshake that has waited so long for its first permit
// that it is unlikely to finish in time is closed before any work is spent on it, so that under
// overload the others get through.
func (c *conn) acquire() bool {
	if c.computing {
		return true
	}
	asked := time.Now()
	if !c.guard.handshakes.acquire(c.source, c.begun, c.removed) {
		return false
	}
	if !c.begun && time.Since(asked) > c.guard.bounds.HandshakeTimeout/2 {
		c.guard.handshakes.release()
		c.guard.closeOverloaded(c)
		return false
	}
	c.computing = true
	if !c.begun {
		c.begun = true
		c.guard.handshakeBegun(c)
	}
	return true
}

func (c *conn) release() {
	if c.computing {
		c.computing = false
		c.guard.handshakes.release()
	}
}

// remoteAddr leads from a gRPC peer back to its connection, whatever wraps the connection.
type remoteAddr struct {
	net.Addr
	conn *conn
}

// RemoteAddr returns the client's address.
func (c *conn) RemoteAddr() net.Addr { return remoteAddr{c.Conn.RemoteAddr(), c} }

// CloseConnection closes the connection that serves the stream or call with the given context. A
// Send to a client that does not read returns only then. It does nothing if no connection guard
// accepted the connection.
func CloseConnection(ctx context.Context, why string) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return
	}
	a, ok := p.Addr.(remoteAddr)
	if !ok {
		return
	}
	c := a.conn
	c.guard.dropAndRefuse(c, func() string { return why })
}
