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

// Config says what the agents are like.
type Config struct {
	ShardID      string        // the random one
	Coordinators []string      // their addresses; agents learn of more
	Interval     time.Duration // of reports, until a coordinator says another; 0: 5s
	Shared       int           // connections to each coordinator, for all agents; 0: one for each agent, with TLS
	Authority    string        // directory of the authorities, where connections are the agents' own
	Warm         bool          // those keep a second connection ready
	Rate         float64       // agents that begin in a second, at most; 0: all at once
	Version      string        // that they say they are of
}

// Deps are what a crowd works with.
type Deps struct {
	// Dial makes a connection, from an address if that is valid; nil is TCP.
	Dial func(ctx context.Context, from netip.Addr, to string) (net.Conn, error)
}

// Crowd is many agents. Its methods may be called at any time, by many.
type Crowd struct {
	cfg     Config
	deps    Deps
	papers  *papers // nil: connections are shared
	bootID  string
	started time.Time
	now     func() time.Time
	loops   []*loop

	ctx    context.Context //nolint:containedctx // Run's, for what an agent begins
	cancel context.CancelFunc
	work   sync.WaitGroup // all goroutines

	mu     sync.Mutex
	agents map[string]*agent
	added  int
	next   time.Time // when the next agent may begin
}

// ErrUnknown: there is no such agent.
var ErrUnknown = errors.New("no such agent")

// New makes a crowd that does nothing yet.
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
			errors.New("new crowd: agents with connections of their own need an authority that certifies them; next: name its directory, or share connections")
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
		if c.papers, err = openPapers(cfg.Authority, cfg.ShardID); err != nil {
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

// Run has the agents live until the context ends. Then they are gone without a goodbye, and so is
// everything of the crowd. It is called once.
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

// Add begins agents, at the crowd's rate, as those of these instances. It returns at once.
func (c *Crowd) Add(instances []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := map[string]bool{}
	for _, id := range instances {
		if seen[id] || c.agents[id] != nil {
			return fmt.Errorf("add agent of %s: it is there already", id)
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

// Silence makes agents fall silent, as How says.
func (c *Crowd) Silence(instances []string, how How) error {
	if !slices.Contains([]How{Mute, Cut, Freeze}, how) {
		return fmt.Errorf("silence agents: %q: mute, cut or freeze", how)
	}
	return c.each("silence", instances, func(a *agent) { a.silence(how) })
}

// Return brings agents back that were silenced. Others go on as they are.
func (c *Crowd) Return(instances []string) error {
	return c.each("bring back", instances, (*agent).comeBack)
}

// Remove takes agents out of the crowd, without a goodbye, as if their machines were gone.
func (c *Crowd) Remove(instances []string) error {
	err := c.each("remove", instances, (*agent).vanish)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range instances {
		delete(c.agents, id)
	}
	return err
}

// each does something with agents, with their loops' locks. It tells of those whom it does not
// know, after doing it with the others.
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
