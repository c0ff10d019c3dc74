package memprovider

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// Config configures how the provider and its machines behave when nothing is wrong.
type Config struct {
	Zones       []string      // default "a", "b"
	Capacity    int           // machines per zone; 0: no limit
	Consistency time.Duration // List lags so far behind Create and Delete
	CallTimeout time.Duration // default 40s
	CallTime    time.Duration // how long every call takes
	BootDelay   time.Duration // from Create or Restart to running
	Seed        uint64        // decides which calls a Fault with a Chance hits

	// Run, if set, is what a machine does: it is called in a goroutine once the machine has booted,
	// with a context that ends when the machine goes down. It must then return. The context's cause
	// is a *Down, unless the provider was closed.
	Run func(context.Context, Boot)

	// Exists, if set, is called when a machine is made or removed, also if the call's answer is
	// lost or its effect late. It is called with the provider's lock held and must not call the
	// provider.
	Exists func(instance, zone string, exists bool)
}

// Down is why the context of a boot ended.
type Down struct {
	By     Call          // Stop, Restart or Delete; "": the machine fell or vanished
	Within time.Duration // what runs is to end in this time, if By is Stop
}

func (d *Down) Error() string {
	if d.By == "" {
		return "machine fell"
	}
	return "machine goes down by " + string(d.By)
}

// Boot is one boot of a machine.
type Boot struct {
	ID        string
	Number    int // 1 for the first
	Zone      string
	Bootstrap provider.Bootstrap

	exit func(why string)
}

// Exit ends the machine in order, by itself, if it is in this boot still.
func (b Boot) Exit(why string) { b.exit(why) }

// Provider is the provider in memory.
type Provider struct {
	config Config

	mu       sync.Mutex
	machines map[string]*machine // all that ever were, by instance
	lives    map[string]*Life
	faults   []*Fault
	chance   *rand.Rand
	closed   bool
	late     map[*time.Timer]bool
	under    int            // calls under way, Lists apart
	most     int            // at once
	running  sync.WaitGroup // goroutines of Run and of late effects
}

var _ provider.Provider = (*Provider)(nil)

// New makes a provider without machines. It starts nothing.
func New(c Config) *Provider {
	if len(c.Zones) == 0 {
		c.Zones = []string{"a", "b"}
	}
	if c.CallTimeout == 0 {
		c.CallTimeout = 40 * time.Second
	}
	return &Provider{
		config: c, machines: map[string]*machine{}, lives: map[string]*Life{}, late: map[*time.Timer]bool{},
		chance: rand.New(rand.NewPCG(c.Seed, c.Seed)),
	}
}

// Close ends what runs in machines, forgets effects still to come, and waits for all goroutines.
// Machines stay listed as they were.
func (p *Provider) Close() {
	p.mu.Lock()
	p.closed = true
	for t := range p.late {
		if t.Stop() {
			p.running.Done()
		}
		delete(p.late, t)
	}
	for _, m := range p.machines {
		if m.end != nil {
			m.end(errClosed)
		}
	}
	p.mu.Unlock()
	p.running.Wait()
}

var errClosed = errors.New("provider was closed")

// Capabilities are as configured.
func (p *Provider) Capabilities() provider.Capabilities {
	return provider.Capabilities{
		Zones: slices.Clone(p.config.Zones), Consistency: p.config.Consistency, CallTimeout: p.config.CallTimeout,
		Boots: true, Crashes: true, Remembers: true,
	}
}

// Validate refuses zones that do not exist.
func (p *Provider) Validate(t provider.Template) error {
	var errs []error
	for _, z := range t.Zones {
		if !slices.Contains(p.config.Zones, z) {
			errs = append(errs, fmt.Errorf("%w: zone %q: there are %v", provider.ErrInvalid, z, p.config.Zones))
		}
	}
	return errors.Join(errs...)
}

// Create makes a machine, once.
func (p *Provider) Create(ctx context.Context, req provider.CreateRequest) (provider.Machine, error) {
	if err := p.Validate(req.Template); err != nil {
		return provider.Machine{}, err
	}
	if req.Zone == "" {
		req.Zone = p.config.Zones[0]
	}
	if err := p.Validate(provider.Template{Zones: []string{req.Zone}}); err != nil {
		return provider.Machine{}, err
	}
	b := req.Bootstrap
	if b.Shard == "" || b.Instance == "" {
		return provider.Machine{}, fmt.Errorf("%w: bootstrap document names no shard or no instance",
			provider.ErrInvalid)
	}
	var made provider.Machine
	err := p.call(ctx, CallCreate, b.Shard, b.Instance, func() (err error) {
		made, err = p.make(req)
		return err
	})
	if err != nil {
		return provider.Machine{}, err
	}
	return made, nil
}

// Stop ends what the machine runs, within the timeout or by leaving it behind.
func (p *Provider) Stop(ctx context.Context, shard, instance string, timeout time.Duration) error {
	var down <-chan struct{}
	err := p.call(ctx, CallStop, shard, instance, func() error {
		if m := p.existing(shard, instance); m != nil && m.down == "" {
			m.stopping = true // until done, which also comes when this call is not there to see it
			m.end(&Down{By: CallStop, Within: timeout})
			down = m.done
		}
		return nil
	})
	if err != nil || down == nil {
		return err
	}
	limit := time.NewTimer(timeout)
	defer limit.Stop()
	select {
	case <-down:
	case <-limit.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.existing(shard, instance); m != nil && m.stopping && m.done == down {
		m.stopping = false
		m.down, m.why = provider.StateStopped, "stopped"
	}
	return nil
}

// Delete removes the machine and remembers its ID.
func (p *Provider) Delete(ctx context.Context, shard, instance string) error {
	return p.call(ctx, CallDelete, shard, instance, func() error {
		m := p.machines[instance]
		switch {
		case m == nil:
			p.machines[instance] = &machine{shard: shard, used: true, gone: time.Now()}
		case m.shard == shard && !m.used:
			m.stale = m.state(time.Now())
			p.remove(m, &Down{By: CallDelete})
			p.life(shard, instance).Deleted++
			p.life(shard, instance).GoneAt = time.Now()
		}
		return nil
	})
}

// Restart boots the machine again, unless another boot than the one named is there already.
func (p *Provider) Restart(ctx context.Context, shard, instance, boot string) error {
	return p.call(ctx, CallRestart, shard, instance, func() error {
		m := p.existing(shard, instance)
		if m == nil {
			return provider.ErrNotFound
		}
		if boot != "" && m.bootID != boot {
			return nil
		}
		p.boot(m)
		return nil
	})
}

// List is all machines of the shard, as they were Consistency ago where that makes a difference.
func (p *Provider) List(ctx context.Context, shard string) ([]provider.Machine, error) {
	var found []provider.Machine
	fault, err := p.observed(ctx, CallList, shard, "", func() error {
		now := time.Now()
		found = []provider.Machine{}
		for _, m := range p.machines {
			if m.shard == shard && m.listed(now, p.config.Consistency) {
				found = append(found, m.seen(now))
			}
		}
		sort.Slice(found, func(i, j int) bool { return found[i].Instance < found[j].Instance })
		return nil
	})
	if err != nil {
		return nil, err
	}
	if fault != nil && fault.Answer != nil {
		found = fault.Answer(found)
	}
	return found, nil
}
