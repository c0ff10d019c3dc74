package guard

import (
	"container/list"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"time"
)

// Deps are the collaborators of a connection guard.
type Deps struct {
	Logger *slog.Logger
	// Refused is called for each connection that is closed or not accepted, up to thousands a
	// second. It must not block.
	Refused func(Refusal)
}

// Connections is the connection guard: it decides which connections to a server may stay.
type Connections struct {
	bounds     Bounds
	deps       Deps
	handshakes *handshakes

	mu        sync.Mutex
	total     int
	pending   *list.List         // of *conn, oldest first
	anonymous *list.List         // of *conn, oldest first
	sources   map[string]*source // by address or network
	named     map[string]*list.List
}

// source has the connections of one address or network.
type source struct{ pending, anonymous *list.List }

// NewConnections returns a connection guard.
func NewConnections(b Bounds, deps Deps) (*Connections, error) {
	if err := b.validate(); err != nil {
		return nil, err
	}
	if deps.Logger == nil || deps.Refused == nil {
		return nil, errors.New("the connection guard needs a logger and a receiver of refusals")
	}
	return &Connections{
		bounds: b, deps: deps, handshakes: newHandshakes(b.Handshakes),
		pending: list.New(), anonymous: list.New(), sources: map[string]*source{}, named: map[string]*list.List{},
	}, nil
}

// SourceOf returns what counts as one source: the IPv4 address without its port, or the IPv6
// network of 64 bits.
func SourceOf(address string) string {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return address
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	p, err := ip.Prefix(64)
	if err != nil {
		return ip.String()
	}
	return p.String()
}

// The reasons for closing connections.
const (
	whySourcePending   = "too many unfinished handshakes of one address"
	whyPending         = "too many unfinished handshakes"
	whySourceAnonymous = "too many connections of one address without a certificate"
	whyName            = "too many connections with one certificate's name"
	whyTotal           = "too many connections"
	whyTimeout         = "handshake not finished in time"
	whyOverload        = "too many handshakes at once"
	whyAnonymousLife   = "without a certificate a client can only join, and joining takes less time"
	whyDescriptors     = "no descriptor is left"
)

// add counts a new connection, or returns why it must be closed. The caller closes the victims that
// made room for it.
func (g *Connections) add(c *conn) (victims []*conn, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.sources[c.source]
	if s == nil {
		s = &source{pending: list.New(), anonymous: list.New()}
	}
	defer g.tidy(c.source)
	for _, bound := range []struct {
		list  *list.List // whose oldest connection makes room
		count func() int
		most  int
		why   string
	}{
		{s.pending, s.pending.Len, g.bounds.PendingPerSource, whySourcePending},
		{g.pending, g.pending.Len, g.bounds.Pending, whyPending},
		{g.pending, func() int { return g.total }, g.bounds.Total, whyTotal},
		{g.anonymous, func() int { return g.total }, g.bounds.Total, whyTotal},
	} {
		if bound.count() < bound.most {
			continue
		}
		if why != "" && why != bound.why {
			break // it is not accepted, so no connection needs to make room for it
		}
		victim := g.oldest(bound.list)
		if victim == nil {
			why = bound.why
			continue // if no pending connection can make room, an anonymous one may
		}
		g.drop(victim, bound.why)
		victims, why = append(victims, victim), ""
	}
	if why != "" {
		return victims, why
	}
	g.sources[c.source] = s // dropping a victim may have removed it
	g.total++
	c.state = statePending
	c.inAll, c.inEach = g.pending.PushBack(c), s.pending.PushBack(c)
	return victims, ""
}

// oldest returns the first connection of a list, nil if that is within its grace.
func (g *Connections) oldest(of *list.List) *conn {
	c := first(of)
	if c == nil || time.Since(c.since) < g.bounds.Grace {
		return nil
	}
	return c
}

// first returns the first connection of a list, nil if the list is empty.
func first(of *list.List) *conn {
	if e := of.Front(); e != nil {
		c, _ := e.Value.(*conn)
		return c
	}
	return nil
}

// handshakeDone records the name that a handshake proved, "" for none, or returns why the
// connection must be closed. The caller closes the victim.
func (g *Connections) handshakeDone(c *conn, name string) (victim *conn, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.state != statePending {
		return nil, c.why
	}
	s := g.sources[c.source]
	defer g.tidy(c.source)
	g.unlist(c)
	c.since = time.Now()
	if name == "" {
		if s.anonymous.Len() >= g.bounds.AnonymousPerSource {
			victim = g.oldest(s.anonymous)
			if victim == nil {
				g.remove(c, whySourceAnonymous)
				return nil, whySourceAnonymous
			}
			g.drop(victim, whySourceAnonymous)
		}
		g.sources[c.source] = s
		c.state = stateAnonymous
		c.inAll, c.inEach = g.anonymous.PushBack(c), s.anonymous.PushBack(c)
		c.timer.Reset(g.bounds.AnonymousLife)
		return victim, ""
	}
	c.timer.Stop()
	c.timer = nil // a named connection has no deadline; do not keep the timer in memory
	of := g.named[name]
	if of == nil {
		of = list.New()
		g.named[name] = of
	}
	if of.Len() >= g.bounds.PerName {
		victim = first(of)
		g.drop(victim, whyName)
		g.named[name] = of
	}
	c.state, c.name = stateNamed, name
	c.inEach = of.PushBack(c)
	return victim, ""
}

// handshakeBegun is called before the first answer to a client. It renews the connection's grace.
func (g *Connections) handshakeBegun(c *conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.state == statePending {
		c.since = time.Now()
		g.pending.MoveToBack(c.inAll)
		g.sources[c.source].pending.MoveToBack(c.inEach)
	}
}

// closeOverloaded closes a connection whose handshake cannot finish in time.
func (g *Connections) closeOverloaded(c *conn) {
	g.dropAndRefuse(c, func() string {
		if c.state == statePending {
			return whyOverload
		}
		return ""
	})
}

// expire closes a connection whose state has lasted too long.
func (g *Connections) expire(c *conn) {
	g.dropAndRefuse(c, func() string {
		return map[connState]string{statePending: whyTimeout, stateAnonymous: whyAnonymousLife}[c.state]
	})
}

// dropAndRefuse closes a connection that still counts if why, called with g.mu held, returns a
// reason.
func (g *Connections) dropAndRefuse(c *conn, why func() string) {
	g.mu.Lock()
	reason := ""
	if c.state != stateClosed {
		reason = why()
	}
	if reason != "" {
		g.drop(c, reason)
	}
	g.mu.Unlock()
	if reason != "" {
		g.refuse(c)
	}
}

// drop removes a connection from all lists and counts. The caller closes it.
func (g *Connections) drop(c *conn, why string) {
	g.unlist(c)
	g.remove(c, why)
	g.tidy(c.source)
}

// remove stops counting a connection that is on no list.
func (g *Connections) remove(c *conn, why string) {
	c.state, c.why = stateClosed, why
	if c.timer != nil {
		c.timer.Stop()
	}
	close(c.removed)
	g.total--
}

// unlist takes a connection off the lists of its state.
func (g *Connections) unlist(c *conn) {
	switch c.state {
	case statePending:
		g.pending.Remove(c.inAll)
		g.sources[c.source].pending.Remove(c.inEach)
	case stateAnonymous:
		g.anonymous.Remove(c.inAll)
		g.sources[c.source].anonymous.Remove(c.inEach)
	case stateNamed:
		of := g.named[c.name]
		if of.Remove(c.inEach); of.Len() == 0 {
			delete(g.named, c.name)
		}
	case stateNew, stateClosed: // on no list
	}
}

// tidy deletes a source without connections.
func (g *Connections) tidy(name string) {
	if s := g.sources[name]; s != nil && s.pending.Len()+s.anonymous.Len() == 0 {
		delete(g.sources, name)
	}
}

// refuse closes a connection and reports it.
func (g *Connections) refuse(c *conn) {
	_ = c.Conn.Close() // nothing can be done about an error here
	g.deps.Refused(Refusal{
		Rule: "SEC-5", What: "connection closed", Why: c.why,
		Address: c.RemoteAddr().String(), Claimed: c.name, Proved: c.name != "",
	})
}

// Counts are the numbers of open connections.
type Counts struct{ Pending, Anonymous, Total int }

// Counts returns the numbers of open connections.
func (g *Connections) Counts() Counts {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Counts{Pending: g.pending.Len(), Anonymous: g.anonymous.Len(), Total: g.total}
}
