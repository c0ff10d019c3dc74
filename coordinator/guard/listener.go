package guard

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/credentials"
)

// Listener guards the connections of another listener. The server behind it must use
// [Connections.Credentials].
func (g *Connections) Listener(l net.Listener) net.Listener {
	return &listener{Listener: l, guard: g, closed: make(chan struct{})}
}

type listener struct {
	net.Listener
	guard  *Connections
	once   sync.Once
	closed chan struct{}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// The pauses after a failed Accept.
const (
	firstPause = 5 * time.Millisecond
	maxPause   = time.Second
)

// Accept returns the next connection that may stay. It fails only once the listener is closed.
// Other errors pass, such as a lack of descriptors, and agents must be able to connect afterwards.
func (l *listener) Accept() (net.Conn, error) {
	pause := firstPause
	for {
		raw, err := l.Listener.Accept()
		if err == nil {
			pause = firstPause
			if c := l.guard.accept(raw); c != nil {
				return c, nil
			}
			continue
		}
		select {
		case <-l.closed:
			return nil, err
		default:
		}
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			l.guard.freeDescriptor()
		}
		l.guard.deps.Logger.Error("agents cannot connect, trying again", "error", err)
		select {
		case <-l.closed:
			return nil, err
		case <-time.After(pause):
			pause = min(2*pause, maxPause)
		}
	}
}

// accept counts a connection, or closes it and returns nil.
func (g *Connections) accept(raw net.Conn) *conn {
	c := &conn{
		Conn: raw, guard: g, source: SourceOf(raw.RemoteAddr().String()), since: time.Now(),
		removed: make(chan struct{}),
	}
	c.timer = time.AfterFunc(g.bounds.HandshakeTimeout, func() { g.expire(c) })
	victims, why := g.add(c)
	for _, v := range victims {
		g.refuse(v)
	}
	if why != "" {
		c.timer.Stop()
		c.why = why
		g.refuse(c)
		return nil
	}
	return c
}

// freeDescriptor closes the oldest pending connection, whose descriptor is needed.
func (g *Connections) freeDescriptor() {
	g.mu.Lock()
	c := g.oldest(g.pending)
	if c != nil {
		g.drop(c, whyDescriptors)
	}
	g.mu.Unlock()
	if c != nil {
		g.refuse(c)
	}
}

// Credentials wraps a server's credentials so that handshakes are guarded. name returns the name
// that a handshake proved, "" for none.
func (g *Connections) Credentials(
	inner credentials.TransportCredentials, name func(credentials.AuthInfo) string,
) credentials.TransportCredentials {
	return &handshaker{TransportCredentials: inner, guard: g, name: name}
}

type handshaker struct {
	credentials.TransportCredentials
	guard *Connections
	name  func(credentials.AuthInfo) string
}

func (h *handshaker) Clone() credentials.TransportCredentials {
	return &handshaker{TransportCredentials: h.TransportCredentials.Clone(), guard: h.guard, name: h.name}
}

func (h *handshaker) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, ok := raw.(*conn)
	if !ok {
		return nil, nil, fmt.Errorf("%T was not accepted by the connection guard", raw)
	}
	c.handshaking = true
	secure, info, err := h.TransportCredentials.ServerHandshake(c)
	c.release()
	c.handshaking = false
	if err != nil {
		return secure, info, err
	}
	victim, why := h.guard.handshakeDone(c, h.name(info))
	if victim != nil {
		h.guard.refuse(victim)
	}
	switch {
	case why == whySourceAnonymous:
		h.guard.refuse(c)
		fallthrough
	case why != "":
		return nil, nil, errors.New(why)
	}
	return secure, info, nil
}
