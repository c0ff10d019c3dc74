package guard

import (
	"container/list"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"time"
)

// Refusal is a connection that the door has closed, or not let in.
type Refusal struct {
	Address string // of the caller, as its connection has it
	Name    string // "" where it showed none
	Why     string
}

// Deps are whom a door tells.
type Deps struct {
	Logger *slog.Logger
	// Refused is told of each refusal, which may be thousands a second, and must not block.
	Refused func(Refusal)
}

// Door counts connections.
type Door struct {
	bounds Bounds
	deps   Deps
	turns  *turns // of handshakes that compute

	mu         sync.Mutex
	all        int
	unfinished *list.List            // of *caller, oldest first
	nameless   *list.List            // likewise
	places     map[string]*place     // by address
	named      map[string]*list.List // by name
}

// place is where callers come from.
type place struct{ unfinished, nameless *list.List }

// New makes a door.
func New(b Bounds, deps Deps) (*Door, error) {
	if err := b.validate(); err != nil {
		return nil, err
	}
	if deps.Logger == nil || deps.Refused == nil {
		return nil, errors.New("door needs a logger and somebody to tell of refusals")
	}
	return &Door{
		bounds: b, deps: deps, turns: newTurns(b.Turns),
		unfinished: list.New(), nameless: list.New(), places: map[string]*place{}, named: map[string]*list.List{},
	}, nil
}

// Place is what counts as one address: it has no port, and of IPv6 it is the network.
func Place(address string) string {
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

// Why callers are turned away.
const (
	whyHereUnfinished = "too many unfinished handshakes of one address"
	whyUnfinished     = "too many unfinished handshakes"
	whyHereNameless   = "too many connections of one address without a certificate"
	whyNamed          = "too many connections with one certificate's name"
	whyAll            = "too many connections"
	whySlow           = "handshake not finished in time"
	whyCrowd          = "too many handshakes at once"
	whyStays          = "without a certificate one can join, and that takes no longer"
	whyDescriptors    = "no descriptor is left"
)

// enter lets a caller in, or says why not. Others may have gone for him.
func (d *Door) enter(c *caller) (gone []*caller, why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.places[c.place]
	if p == nil {
		p = &place{unfinished: list.New(), nameless: list.New()}
	}
	defer d.tidy(c.place)
	for _, bound := range []struct {
		list *list.List // whose eldest goes
		has  func() int
		most int
		why  string
	}{
		{p.unfinished, p.unfinished.Len, d.bounds.UnfinishedEach, whyHereUnfinished},
		{d.unfinished, d.unfinished.Len, d.bounds.Unfinished, whyUnfinished},
		{d.unfinished, func() int { return d.all }, d.bounds.All, whyAll},
		{d.nameless, func() int { return d.all }, d.bounds.All, whyAll},
	} {
		if bound.has() < bound.most {
			continue
		}
		victim := d.eldest(bound.list)
		if victim == nil {
			why = bound.why
			continue // strangers without an unfinished handshake may have one without a name
		}
		d.drop(victim, bound.why)
		gone, why = append(gone, victim), ""
	}
	if why != "" {
		return gone, why
	}
	d.places[c.place] = p // one who had to go may have been the last of it
	d.all++
	c.state = unfinished
	c.inAll, c.inEach = d.unfinished.PushBack(c), p.unfinished.PushBack(c)
	return gone, ""
}

// eldest is the first of a list, if it has had its second.
func (d *Door) eldest(of *list.List) *caller {
	c := first(of)
	if c == nil || time.Since(c.since) < d.bounds.Young {
		return nil
	}
	return c
}

// first is whoever has been on a list for longest, nil if it is empty.
func first(of *list.List) *caller {
	if e := of.Front(); e != nil {
		c, _ := e.Value.(*caller)
		return c
	}
	return nil
}

// finish takes note that a handshake is done, and of the name that it gave, "" for none; or says why the caller may not stay.
func (d *Door) finish(c *caller, name string) (gone *caller, why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.state != unfinished {
		return nil, c.why
	}
	p := d.places[c.place]
	defer d.tidy(c.place)
	d.unlist(c)
	c.since = time.Now()
	if name == "" {
		if p.nameless.Len() >= d.bounds.NamelessEach {
			gone = d.eldest(p.nameless)
			if gone == nil {
				d.leave(c, whyHereNameless)
				return nil, whyHereNameless
			}
			d.drop(gone, whyHereNameless)
		}
		d.places[c.place] = p
		c.state = nameless
		c.inAll, c.inEach = d.nameless.PushBack(c), p.nameless.PushBack(c)
		c.clock.Reset(d.bounds.Nameless)
		return gone, ""
	}
	c.clock.Stop()
	c.clock = nil // a named one may stay: nothing of what is over is kept for it
	of := d.named[name]
	if of == nil {
		of = list.New()
		d.named[name] = of
	}
	if of.Len() >= d.bounds.NamedEach {
		gone = first(of)
		d.drop(gone, whyNamed)
		d.named[name] = of
	}
	c.state, c.name = named, name
	c.inEach = of.PushBack(c)
	return gone, ""
}

// answers takes note that a caller is about to be answered for the first time: he has another second until he goes for others.
func (d *Door) answers(c *caller) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.state == unfinished {
		c.since = time.Now()
		d.unfinished.MoveToBack(c.inAll)
		d.places[c.place].unfinished.MoveToBack(c.inEach)
	}
}

// giveUpOn turns a caller away for whose handshake there was no time.
func (d *Door) giveUpOn(c *caller) {
	d.mu.Lock()
	was := c.state
	if was == unfinished {
		d.drop(c, whyCrowd)
	}
	d.mu.Unlock()
	if was == unfinished {
		d.turnAway(c)
	}
}

// late ends a caller whose time is over.
func (d *Door) late(c *caller) {
	d.mu.Lock()
	why := map[state]string{unfinished: whySlow, nameless: whyStays}[c.state]
	if why != "" {
		d.drop(c, why)
	}
	d.mu.Unlock()
	if why != "" {
		d.turnAway(c)
	}
}

// drop forgets a caller, who is to be closed by whoever calls this.
func (d *Door) drop(c *caller, why string) {
	d.unlist(c)
	d.leave(c, why)
	d.tidy(c.place)
}

func (d *Door) leave(c *caller, why string) {
	c.state, c.why = gone, why
	if c.clock != nil {
		c.clock.Stop()
	}
	close(c.left)
	d.all--
}

// unlist takes a caller off the lists of his state.
func (d *Door) unlist(c *caller) {
	switch c.state {
	case unfinished:
		d.unfinished.Remove(c.inAll)
		d.places[c.place].unfinished.Remove(c.inEach)
	case nameless:
		d.nameless.Remove(c.inAll)
		d.places[c.place].nameless.Remove(c.inEach)
	case named:
		of := d.named[c.name]
		if of.Remove(c.inEach); of.Len() == 0 {
			delete(d.named, c.name)
		}
	case fresh, gone: // on none
	}
}

// tidy forgets a place that nobody is from.
func (d *Door) tidy(at string) {
	if p := d.places[at]; p != nil && p.unfinished.Len()+p.nameless.Len() == 0 {
		delete(d.places, at)
	}
}

// turnAway closes a caller's connection and tells of it.
func (d *Door) turnAway(c *caller) {
	_ = c.Conn.Close() // nobody is left to tell
	d.deps.Refused(Refusal{Address: c.RemoteAddr().String(), Name: c.name, Why: c.why})
}

// Counts are the connections there are.
type Counts struct{ Unfinished, Nameless, All int }

// Counts counts.
func (d *Door) Counts() Counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Counts{Unfinished: d.unfinished.Len(), Nameless: d.nameless.Len(), All: d.all}
}
