package web

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

const writeBuffer = 256 << 10

// crowd bounds the number of connections. When all places are taken, a new connection is still
// accepted and an idle one is closed: the one that has been idle for longest, of the address that
// has most. So thousands of idle connections, or of requests that never end, keep no client out.
type crowd struct {
	net.Listener
	most int

	mu    sync.Mutex
	seats map[*seat]struct{}
}

// seat is a connection's place.
type seat struct {
	net.Conn
	crowd *crowd
	from  string
	// Guarded by the crowd's lock.
	since time.Time // when it came, or was answered last
	busy  bool      // it is being answered
}

func newCrowd(l net.Listener, most int) *crowd {
	return &crowd{Listener: l, most: most, seats: map[*seat]struct{}{}}
}

func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(writeBuffer) // a slow reader holds no more of the kernel's memory
		}
		s := &seat{Conn: conn, crowd: c, since: time.Now()}
		if s.from, _, err = net.SplitHostPort(conn.RemoteAddr().String()); err != nil {
			s.from = conn.RemoteAddr().String()
		}
		out, in := c.place(s)
		if out != nil {
			out.Conn.Close()
		}
		if in {
			return s, nil
		}
		conn.Close()
	}
}

// place gives a new connection a place, and returns the one that loses its place.
func (c *crowd) place(s *seat) (out *seat, in bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seats) >= c.most {
		if out = c.spare(); out == nil {
			return nil, false
		}
		delete(c.seats, out)
	}
	c.seats[s] = struct{}{}
	return out, true
}

// spare returns the connection that can be closed; nil if all have requests under way. The caller
// holds the lock.
func (c *crowd) spare() *seat {
	of := map[string]int{}
	for s := range c.seats {
		of[s.from]++
	}
	var spare *seat
	for s := range c.seats {
		switch {
		case s.busy:
		case spare == nil, of[s.from] > of[spare.from], of[s.from] == of[spare.from] && s.since.Before(spare.since):
			spare = s
		}
	}
	return spare
}

// Close frees the connection's place.
func (s *seat) Close() error {
	s.crowd.mu.Lock()
	delete(s.crowd.seats, s)
	s.crowd.mu.Unlock()
	return s.Conn.Close()
}

func (s *seat) use(busy bool) {
	s.crowd.mu.Lock()
	s.busy, s.since = busy, time.Now()
	s.crowd.mu.Unlock()
}

type seatKey struct{}

// seated stores the place of a connection in the context of its requests.
func seated(ctx context.Context, c net.Conn) context.Context {
	if secured, ok := c.(*tls.Conn); ok {
		c = secured.NetConn()
	}
	if s, ok := c.(*seat); ok {
		return context.WithValue(ctx, seatKey{}, s)
	}
	return ctx
}

// inUse marks a connection as busy, so that it is not closed for another one, until the returned
// function is called.
func inUse(r *http.Request) (done func()) {
	s, ok := r.Context().Value(seatKey{}).(*seat)
	if !ok {
		return func() {}
	}
	s.use(true)
	return func() { s.use(false) }
}
