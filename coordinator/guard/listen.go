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

// Listener lets in who comes to another listener. The server behind it must have [Door.Credentials].
func (d *Door) Listener(l net.Listener) net.Listener {
	return &listener{Listener: l, door: d, closed: make(chan struct{})}
}

type listener struct {
	net.Listener
	door   *Door
	once   sync.Once
	closed chan struct{}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// How long an Accept that fails is waited with.
const (
	firstPause = 5 * time.Millisecond
	mostPause  = time.Second
)

// Accept returns the next caller who may come in. It fails once the listener is closed, and never else: whatever is wrong, lack of descriptors say,
// passes, and agents come as long as we listen.
func (l *listener) Accept() (net.Conn, error) {
	pause := firstPause
	for {
		conn, err := l.Listener.Accept()
		if err == nil {
			pause = firstPause
			if c := l.door.take(conn); c != nil {
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
			l.door.giveUp()
		}
		l.door.deps.Logger.Error("agents cannot connect, trying again", "error", err)
		select {
		case <-l.closed:
			return nil, err
		case <-time.After(pause):
			pause = min(2*pause, mostPause)
		}
	}
}

// take makes a caller of a connection, or closes it.
func (d *Door) take(conn net.Conn) *caller {
	c := &caller{Conn: conn, door: d, place: Place(conn.RemoteAddr().String()), since: time.Now(), left: make(chan struct{})}
	c.clock = time.AfterFunc(d.bounds.Handshake, func() { d.late(c) })
	victims, why := d.enter(c)
	for _, v := range victims {
		d.turnAway(v)
	}
	if why != "" {
		c.clock.Stop()
		c.why = why
		d.turnAway(c)
		return nil
	}
	return c
}

// giveUp closes the eldest unfinished connection: its descriptor is needed.
func (d *Door) giveUp() {
	d.mu.Lock()
	c := d.eldest(d.unfinished)
	if c != nil {
		d.drop(c, whyDescriptors)
	}
	d.mu.Unlock()
	if c != nil {
		d.turnAway(c)
	}
}

// Credentials are those given, in turn, and with note taken of the name of who comes in: name reads it from what the handshake found, "" for
// none.
func (d *Door) Credentials(inner credentials.TransportCredentials, name func(credentials.AuthInfo) string) credentials.TransportCredentials {
	return &handshaker{TransportCredentials: inner, door: d, name: name}
}

type handshaker struct {
	credentials.TransportCredentials
	door *Door
	name func(credentials.AuthInfo) string
}

func (h *handshaker) Clone() credentials.TransportCredentials {
	return &handshaker{TransportCredentials: h.TransportCredentials.Clone(), door: h.door, name: h.name}
}

func (h *handshaker) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, ok := raw.(*caller)
	if !ok {
		return nil, nil, fmt.Errorf("%T came through no door", raw)
	}
	c.shaking = true
	conn, info, err := h.TransportCredentials.ServerHandshake(c)
	c.rest()
	c.shaking = false
	if err != nil {
		return conn, info, err
	}
	victim, why := h.door.finish(c, h.name(info))
	if victim != nil {
		h.door.turnAway(victim)
	}
	switch {
	case why == whyHereNameless:
		h.door.turnAway(c)
		fallthrough
	case why != "":
		return nil, nil, errors.New(why)
	}
	return conn, info, nil
}
