package crowd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/agent/session"
)

// Config describes the agents.
type Config struct {
	ShardID      string        // the shard's random ID
	Coordinators []string      // addresses to begin with; agents learn of more
	Interval     time.Duration // between reports, until a coordinator says otherwise; 0: 5s
	Shared       int           // connections to each coordinator, for all agents; 0: one for each agent, with TLS
	Authority    string        // directory of the authorities, where connections are the agents' own
	Warm         bool          // agents keep a second connection warm; only if connections are their own
	Rate         float64       // agents that begin per second; 0: all at once
	Version      string        // the release that agents announce
}

// Deps are the collaborators of a crowd.
type Deps struct {
	// Dial opens a connection, from a local address if that is valid; nil is TCP.
	Dial func(ctx context.Context, from netip.Addr, to string) (net.Conn, error)
}

// Crowd simulates many agents. Its methods are safe for concurrent use.
type Crowd struct {
	cfg          Config
	deps         Deps
	certificates *certificates // nil: connections are shared
	bootID       string
	started      time.Time
	now          func() time.Time
	loops        []*loop

	ctx    context.Context //nolint:containedctx // Run's, for what an agent begins
	cancel context.CancelFunc
	work   sync.WaitGroup // all goroutines

	mu     sync.Mutex
	agents map[string]*agent
	added  int
	next   time.Time // when the next agent may begin
}

// ErrUnknown: the crowd has no such agent.
var ErrUnknown = errors.New("no such agent")

// New returns a crowd without agents. It starts nothing.
func New(cfg Config, deps Deps) (*Crowd, error) {
	switch {
	case cfg.ShardID == "":
		return nil, errors.New("new crowd: no shard: its random ID is needed")
	case len(cfg.Coordinators) == 0:
		return nil, errors.New("new crowd: no coordinator")
	case cfg.Shared < 0 || cfg.Rate < 0 || cfg.Interval < 0:
		return nil, errors.New("new crowd: shared connections, rate and interval cannot be below 0")
	case cfg.Shared == 0 && cfg.Authority == "":
		return nil,
			errors.New("new crowd: agents with connections of their own need an authority that certifies them; next: " +
				"name its directory, or share connections")
	}
	c := &Crowd{cfg: cfg, deps: deps, started: time.Now(), now: time.Now, agents: map[string]*agent{}}
	if c.cfg.Interval == 0 {
		c.cfg.Interval = 5 * time.Second
	}
	if c.deps.Dial == nil {
		c.deps.Dial = dial
	}
	boot := make([]byte, 8)
	if _, err := rand.Read(boot); err != nil {
		return nil, fmt.Errorf("new crowd: %w", err)
	}
	c.bootID = "bench-" + hex.EncodeToString(boot)
	if cfg.Shared == 0 {
		var err error
		if c.certificates, err = openPapers(cfg.Authority, cfg.ShardID); err != nil {
			return nil, fmt.Errorf("new crowd: %w", err)
		}
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	n := runtime.GOMAXPROCS(0)
	if cfg.Shared > 0 {
		n = min(n, cfg.Shared) // a shared connection belongs to one loop
	}
	for range n {
		c.loops = append(c.loops, newLoop(c))
	}
	return c, nil
}

func dial(ctx context.Context, from netip.Addr, to string) (net.Conn, error) {
	var d net.Dialer
	if from.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	return d.DialContext(ctx, "tcp", to)
}

// Run runs the agents until the context ends. It then closes everything without a goodbye. It must
// be called once.
func (c *Crowd) Run(ctx context.Context) error {
	for _, l := range c.loops {
		c.work.Go(l.run)
	}
	c.work.Go(c.tend)
	<-ctx.Done()
	c.cancel()
	for _, l := range c.loops {
		l.close()
	}
	c.work.Wait()
	return context.Cause(ctx)
}

// Add starts an agent for each of these instances, at the crowd's rate. It returns at once.
func (c *Crowd) Add(instances []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := map[string]bool{}
	for _, id := range instances {
		if seen[id] || c.agents[id] != nil {
			return fmt.Errorf("add agent of %s: the crowd already has it", id)
		}
		seen[id] = true
	}
	now := c.now()
	if c.next.Before(now) {
		c.next = now
	}
	for _, id := range instances {
		number := c.added
		if c.cfg.Shared > 0 {
			number %= c.cfg.Shared
		}
		c.added++
		a := &agent{id: id, number: number, loop: c.loops[number%len(c.loops)], at: -1}
		a.session = session.New(session.Config{
			Bootstrap: c.cfg.Coordinators, ReportInterval: c.cfg.Interval,
			Rand: chance,
		})
		c.agents[id] = a
		a.loop.add(a, c.next)
		if c.cfg.Rate > 0 {
			c.next = c.next.Add(time.Duration(float64(time.Second) / c.cfg.Rate))
		}
	}
	return nil
}

// Silence silences agents in the given way.
func (c *Crowd) Silence(instances []string, how How) error {
	if !slices.Contains([]How{Mute, Cut, Freeze}, how) {
		return fmt.Errorf("silence agents: %q: mute, cut or freeze", how)
	}
	return c.each("silence", instances, func(a *agent) { a.silence(how) })
}

// Return lets silenced agents go on. It does nothing to others.
func (c *Crowd) Return(instances []string) error {
	return c.each("bring back", instances, (*agent).comeBack)
}

// Remove removes agents without a goodbye, as if their machines had vanished.
func (c *Crowd) Remove(instances []string) error {
	err := c.each("remove", instances, (*agent).vanish)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range instances {
		delete(c.agents, id)
	}
	return err
}

// each calls a function for each agent with its loop's lock held. It goes on after an unknown
// agent, and returns an error for it at the end.
func (c *Crowd) each(what string, instances []string, do func(*agent)) error {
	var unknown error
	for _, id := range instances {
		c.mu.Lock()
		a := c.agents[id]
		c.mu.Unlock()
		if a == nil {
			if unknown == nil {
				unknown = fmt.Errorf("%s agent of %s: %w", what, id, ErrUnknown)
			}
			continue
		}
		a.loop.mu.Lock()
		if !a.loop.over {
			do(a)
		}
		a.loop.mu.Unlock()
	}
	return unknown
}
