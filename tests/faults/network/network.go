package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Network is a switch. It is safe for concurrent use.
type Network struct {
	ctx  context.Context
	end  context.CancelFunc
	all  sync.WaitGroup
	held atomic.Int64
	book atomic.Pointer[book] // changed under mu alone

	mu        sync.Mutex
	closed    bool
	listeners []net.Listener
	links     map[*link]bool
	names     map[netip.Addr]string
	sources   map[string]netip.Addr
	given     uint32 // addresses so far
}

// New is a network without ways and rules.
func New() *Network {
	ctx, end := context.WithCancel(context.Background())
	n := &Network{
		ctx: ctx, end: end, links: map[*link]bool{}, names: map[netip.Addr]string{},
		sources: map[string]netip.Addr{},
	}
	n.book.Store(newBook(nil))
	return n
}

// Way describes how to reach a party.
type Way struct {
	From  string // who connects; "": determined by its address, see Name and Source
	To    string // who is reached
	At    string // host:port to connect to; "": any free port of 127.0.0.1
	Leads string // host:port where To listens; it need not do so yet
}

var errClosed = errors.New("the network is closed")

// Listen opens a way, until the network is closed, and returns the address to connect to.
func (n *Network) Listen(w Way) (address string, err error) {
	if w.At == "" {
		w.At = "127.0.0.1:0"
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return "", fmt.Errorf("open the way to %s: %w", w.To, errClosed)
	}
	// The kernel of the switch must not look after its ends: that would tell nothing about the
	// parties.
	l, err := (&net.ListenConfig{KeepAlive: -1}).Listen(n.ctx, "tcp", w.At)
	if err != nil {
		return "", fmt.Errorf("open the way to %s: %w", w.To, err)
	}
	n.listeners = append(n.listeners, l)
	n.all.Go(func() { n.serve(l, w) })
	return l.Addr().String(), nil
}

func (n *Network) serve(l net.Listener, w Way) {
	for {
		c, err := l.Accept()
		if n.ctx.Err() != nil {
			if err == nil {
				cut(c)
			}
			return
		}
		if err != nil { // too many open files, say
			select {
			case <-time.After(10 * time.Millisecond):
			case <-n.ctx.Done():
				return
			}
			continue
		}
		from := w.From
		if from == "" {
			from = n.partyAt(c.RemoteAddr())
		}
		if link := n.admit(c, from, w.To); link != nil {
			n.all.Go(func() { link.lead(w.Leads) })
		} else {
			cut(c)
		}
	}
}

// admit makes a link of a connection, nil if it is refused. From then on rules apply to it.
func (n *Network) admit(c net.Conn, from, to string) *link {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || n.book.Load().refuses(from, to) {
		return nil
	}
	l := newLink(n, c, from, to)
	n.links[l] = true
	return l
}

func (n *Network) forget(l *link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.links, l)
}

// Impose applies a rule, also to existing connections, until it is lifted. It may be lifted more
// than once.
func (n *Network) Impose(r Rule) (lift func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.turn(append(slices.Clone(n.book.Load().rules), &r))
	if r.Reset {
		for l := range n.links {
			if r.concerns(l.from, l.to) {
				l.reset()
			}
		}
	}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.turn(slices.DeleteFunc(slices.Clone(n.book.Load().rules), func(other *Rule) bool { return other == &r }))
	}
}

// turn replaces the rules. The caller holds mu.
func (n *Network) turn(rules []*Rule) {
	before := n.book.Swap(newBook(rules))
	close(before.turned)
}

// Held returns how much waits for the end of a silence now: directions with data to deliver, and
// new connections.
func (n *Network) Held() int { return int(n.held.Load()) }

// Close ends all ways and connections, and returns when nothing is left of them.
func (n *Network) Close() {
	n.mu.Lock()
	n.closed = true
	n.end()
	for _, l := range n.listeners {
		_ = l.Close()
	}
	n.listeners = nil
	for l := range n.links {
		l.reset()
	}
	n.mu.Unlock()
	n.all.Wait()
}
