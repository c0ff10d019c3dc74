package crowd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/cmd/bench/crowd/wire"
)

// The same values as for the connections of real agents: see agent/stream.go.
const (
	connectTimeout = 5 * time.Second
	// wait after a second connection failed; it doubles with each failure, up to maxWarm
	warmFirst       = time.Second
	maxWarm         = 30 * time.Second
	sharedReadAhead = 32 << 10
)

var errLate = errors.New("no connection in time")

// trunk identifies a shared connection.
type trunk struct {
	address string
	number  int
}

// line is a connection, open or being opened. The loop's lock guards it.
type line struct {
	loop    *loop
	agent   *agent // the agent that it was made for
	address string
	shared  bool
	key     trunk
	ended   bool
	cancel  context.CancelFunc
	conn    *wire.Conn // nil: still connecting
	waiting []*stream  // streams that wait for the connection
}

// lineTo returns a connection to a coordinator for a stream: the shared one, the warm one, or a new
// one.
func (a *agent) lineTo(address string) *line {
	l := a.loop
	if l.crowd.certificates == nil {
		key := trunk{address, a.number}
		ln := l.trunks[key]
		if ln == nil || ln.ended || ln.conn != nil && !ln.conn.Ready() {
			ln = a.connect(address)
			ln.key, l.trunks[key] = key, ln
		}
		return ln
	}
	ready := a.warm
	if ready == nil || ready.address != address {
		return a.connect(address)
	}
	a.warm = nil
	if ready.conn != nil && ready.conn.Ready() {
		return ready
	}
	ready.close(wire.ErrClosed)
	return a.connect(address)
}

// keepWarm keeps a second connection open, beginning at the given time (SAFE-11).
func (a *agent) keepWarm(address string, at time.Time) {
	if !a.loop.crowd.cfg.Warm || a.loop.crowd.certificates == nil {
		return
	}
	w := a.warm
	switch {
	case address == "":
		a.endWarm()
	case w != nil && w.address == address && !w.ended && (w.conn == nil || w.conn.Ready()):
		a.next = ""
	case a.next != address:
		a.next, a.nextAt = address, at
	}
}

// makeWarm opens the second connection.
func (a *agent) makeWarm(address string) {
	a.endWarm()
	a.warm = a.connect(address)
}

func (a *agent) endWarm() {
	a.next = ""
	if a.warm != nil {
		a.warm.close(wire.ErrClosed)
		a.warm = nil
	}
}

// keep keeps the connection of a stream that a coordinator refused as the warm one.
func (a *agent) keep(s *stream) {
	if s.line.shared {
		s.giveUp()
		return
	}
	a.endWarm()
	a.warm, s.kept = s.line, true
	s.stream.Cancel()
}

// connect starts to open a connection and returns at once.
func (a *agent) connect(address string) *line {
	l := a.loop
	ctx, cancel := context.WithTimeout(l.crowd.ctx, connectTimeout)
	ln := &line{loop: l, agent: a, address: address, shared: l.crowd.certificates == nil, cancel: cancel}
	l.lines[ln] = struct{}{}
	l.crowd.work.Go(func() {
		defer cancel()
		conn, err := l.crowd.reach(ctx, a, address)
		l.mu.Lock()
		defer l.mu.Unlock()
		ln.reached(conn, err)
		if err == nil {
			a.cold = 0
		} else if a.warm == ln && !l.over {
			a.warmLater(ln)
		}
	})
	return ln
}

// warmLater schedules another attempt to open the second connection, with gRPC's backoff, after one
// failed or was lost.
func (a *agent) warmLater(failed *line) {
	wait := min(maxWarm, warmFirst<<min(a.cold, 10))
	a.cold++
	time.AfterFunc(time.Duration((0.5+chance())*float64(wait)), func() {
		a.loop.mu.Lock()
		defer a.loop.mu.Unlock()
		if a.warm == failed && !a.loop.over {
			a.warm = a.connect(failed.address)
		}
	})
}

// reached handles the result of connecting.
func (ln *line) reached(conn *wire.Conn, err error) {
	if ln.ended || ln.loop.over {
		if err == nil {
			conn.Close(errOver)
		}
		return
	}
	now := ln.loop.crowd.now()
	ln.conn = conn
	waiting := ln.waiting
	ln.waiting = nil
	if err != nil {
		ln.close(err)
	}
	for _, s := range waiting {
		failed := err
		if failed == nil {
			failed = s.begin(now)
		}
		if failed != nil {
			s.over(failed)
		}
	}
}

// reach opens a connection for an agent, over TLS unless it is shared.
func (c *Crowd) reach(ctx context.Context, a *agent, address string) (*wire.Conn, error) {
	cfg := wire.Config{
		Path: protocol.Gateway_Session_FullMethodName, Authority: address, ReadAhead: sharedReadAhead,
		Go: c.work.Go,
	}
	var from netip.Addr
	var config *tls.Config
	if c.certificates != nil {
		own, err := a.identification()
		if err != nil {
			return nil, err
		}
		config = identity.ClientConfig(c.cfg.ShardID, own.certificate, c.certificates.trust)
		cfg.ReadAhead = 0 // the TLS layer closes it
		from = sourceOf(a.id, address)
	}
	raw, err := c.deps.Dial(ctx, from, address)
	if err != nil {
		return nil, inTime(ctx, err)
	}
	stop := context.AfterFunc(ctx, func() { raw.Close() }) // whatever is waited for
	defer stop()
	through := raw
	if config != nil {
		secured := tls.Client(raw, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, inTime(ctx, fmt.Errorf("handshake: %w", err))
		}
		through = secured
	}
	conn, err := wire.New(through, cfg)
	if err != nil {
		raw.Close()
		return nil, inTime(ctx, err)
	}
	return conn, nil
}

// inTime returns why connecting failed: if the time was up, that alone, whatever the error was.
func inTime(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errLate
	}
	return err
}

// close closes the connection, open or being opened. It may be called again.
func (ln *line) close(why error) {
	if ln.ended {
		return
	}
	ln.drop()
	if ln.conn != nil {
		ln.conn.Close(why)
	}
}

// breakOff closes the connection without a goodbye, as a failed network does.
func (ln *line) breakOff() {
	if ln.ended {
		return
	}
	ln.drop()
	if ln.conn != nil {
		ln.conn.Break(errCut)
	}
}

func (ln *line) drop() {
	ln.ended = true
	ln.cancel()
	delete(ln.loop.lines, ln)
	if ln.shared && ln.loop.trunks[ln.key] == ln {
		delete(ln.loop.trunks, ln.key)
	}
}

func (ln *line) unwait(s *stream) {
	ln.waiting = slices.DeleteFunc(ln.waiting, func(o *stream) bool { return o == s })
}

// tend sends the keepalives until the crowd ends: see wire.Conn.Tend.
func (c *Crowd) tend() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case now := <-tick.C:
			for _, l := range c.loops {
				l.tend(now)
			}
		}
	}
}

func (l *loop) tend(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ln := range l.lines {
		switch {
		case ln.conn == nil:
		case !ln.conn.Ready() && ln.conn.Streams() == 0:
			ln.close(wire.ErrClosed)
			if ln.agent.warm == ln { // it was open, and the other end closed it
				ln.agent.warmLater(ln)
			}
		default:
			ln.conn.Tend(now, protocol.PingAfter, protocol.PongTimeout)
		}
	}
}

// sourceOf returns a local address for an agent's connections to a coordinator on this machine, one
// of some thousand, because each address has its own ports. For other coordinators it returns none.
func sourceOf(id, address string) netip.Addr {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !to.Addr().Is4() || !to.Addr().IsLoopback() {
		return netip.Addr{}
	}
	h := fnv.New32a()
	h.Write([]byte(id))
	n := h.Sum32()
	return netip.AddrFrom4([4]byte{127, 1 + byte(n>>8)%15, 0, 1 + byte(n)%250})
}

// plain returns an error's text without addresses, so that equal errors can be counted.
func plain(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Op + ": " + op.Err.Error()
	}
	text := err.Error()
	if first, _, more := strings.Cut(text, "\n"); more {
		text = first
	}
	return text
}

// identification returns the agent's certificate, and issues it on the first call.
func (a *agent) identification() (*identification, error) {
	l := a.loop
	l.mu.Lock()
	own := a.own
	l.mu.Unlock()
	if own != nil {
		return own, nil
	}
	own, err := l.crowd.certificates.of(a.id)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a.own, a.tail = own, nil
	return own, nil
}
