package fake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// Provider is a Cloud as a provider.Provider, on the time package.
type Provider struct {
	inside Inside

	mu      sync.Mutex
	cloud   *Cloud
	lives   map[string]*Life
	boots   map[string]*boot // the present one of each machine
	closed  bool
	timers  map[*time.Timer]bool // of what is still to happen
	under   int                  // calls under way, Lists apart
	most    int                  // at once
	running sync.WaitGroup       // boots and timers
}

var _ provider.Provider = (*Provider)(nil)

// NewProvider makes a provider without machines. It starts nothing.
func NewProvider(cfg Config, in Inside) *Provider {
	p := &Provider{
		inside: in, lives: map[string]*Life{}, boots: map[string]*boot{}, timers: map[*time.Timer]bool{},
	}
	p.cloud = NewCloud(cfg, World{
		Clock: wallClock{p}, Boots: p.boot, Ends: p.end, Observe: p.observe, Leaving: in.Leaving,
		Address: in.Address,
	})
	return p
}

// wallClock is the time package. What happens later happens with the provider's lock held; what
// happens at once, with the lock that its caller holds.
type wallClock struct{ p *Provider }

func (wallClock) Now() time.Time { return time.Now() }

func (c wallClock) After(d time.Duration, do func()) {
	p := c.p
	if p.closed {
		return
	}
	if d <= 0 {
		do()
		return
	}
	p.running.Add(1)
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		defer p.running.Done()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.timers, t)
		if !p.closed {
			do()
		}
	})
	p.timers[t] = true
}

// Close ends what runs in machines, forgets effects still to come, and waits for all goroutines.
// Machines stay listed as they were.
func (p *Provider) Close() {
	p.mu.Lock()
	p.closed = true
	for t := range p.timers {
		if t.Stop() {
			p.running.Done()
		}
	}
	clear(p.timers)
	for _, b := range p.boots {
		b.end(errClosed)
	}
	p.mu.Unlock()
	p.running.Wait()
}

var errClosed = errors.New("provider was closed")

// Capabilities are as configured.
func (p *Provider) Capabilities() provider.Capabilities { return p.cloud.Capabilities() }

// Validate refuses zones that do not exist.
func (p *Provider) Validate(t provider.Template) error {
	var errs []error
	for _, z := range t.Zones {
		if all := p.cloud.zoneNames(); !slices.Contains(all, z) {
			errs = append(errs, fmt.Errorf("%w: zone %q: there are %v", provider.ErrInvalid, z, all))
		}
	}
	return errors.Join(errs...)
}

// Create makes a machine, once.
func (p *Provider) Create(ctx context.Context, req provider.CreateRequest) (made provider.Machine, err error) {
	if req.Zone == "" {
		req.Zone = p.cloud.zoneNames()[0]
	}
	if err := errors.Join(p.Validate(req.Template),
		p.Validate(provider.Template{Zones: []string{req.Zone}})); err != nil {
		return made, err
	}
	b := req.Bootstrap
	if b.Shard == "" || b.Instance == "" {
		return made, fmt.Errorf("%w: bootstrap document names no shard or no instance", provider.ErrInvalid)
	}
	err = p.call(ctx, CallCreate, b.Shard, b.Instance, func(answer func(error)) func() {
		return p.cloud.Create(req, 0, nil, func(m provider.Machine, err error) {
			made = m
			answer(err)
		})
	})
	if err != nil {
		return provider.Machine{}, err
	}
	return made, nil
}

// Stop ends what the machine runs, within the timeout or by leaving it behind.
func (p *Provider) Stop(ctx context.Context, shard, instance string, timeout time.Duration) error {
	err := p.call(ctx, CallStop, shard, instance, func(answer func(error)) func() {
		return p.cloud.Stop(shard, instance, timeout, 0, answer)
	})
	if err != nil {
		return err
	}
	return p.awaitStop(ctx, shard, instance, timeout)
}

// Delete removes the machine and remembers its ID.
func (p *Provider) Delete(ctx context.Context, shard, instance string) error {
	return p.call(ctx, CallDelete, shard, instance, func(answer func(error)) func() {
		return p.cloud.Delete(shard, instance, 0, answer)
	})
}

// Restart boots the machine again, unless another boot than the one named is there already.
func (p *Provider) Restart(ctx context.Context, shard, instance, boot string) error {
	return p.call(ctx, CallRestart, shard, instance, func(answer func(error)) func() {
		return p.cloud.Restart(shard, instance, boot, 0, answer)
	})
}

// List is all machines of the shard as they were when it was begun, and Consistency before where
// that makes a difference.
func (p *Provider) List(ctx context.Context, shard string) (found []provider.Machine, err error) {
	err = p.call(ctx, CallList, shard, "", func(answer func(error)) func() {
		l := p.cloud.List(shard)
		if tell, ok := ctx.Value(lieKey{}).(func(LieKind)); ok {
			tell(l.Lie)
		}
		found = l.Machines
		if !l.Never {
			p.cloud.world.Clock.After(l.Takes, func() { answer(l.Err) })
		}
		return func() {}
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// call makes a call, and has it entered in the ledger.
func (p *Provider) call(ctx context.Context, c Call, shard, instance string,
	begin func(answer func(error)) (giveUp func()),
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	p.mu.Lock()
	p.enter(c, shard, instance)
	giveUp := begin(func(err error) {
		p.leave(shard, instance)
		done <- err
	})
	hit, tell := p.cloud.hit, ctx.Value(hitKey{})
	p.mu.Unlock()
	if tell, ok := tell.(func(Fault)); ok && hit != nil {
		tell(*hit)
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case err := <-done: // just in time
		return err
	default:
	}
	giveUp()
	p.leave(shard, instance)
	return ctx.Err()
}

// Inject lets calls go wrong from now on, until remove is called or the fault is used up.
func (p *Provider) Inject(f Fault) (remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.locked(p.cloud.Inject(f))
}

// Lie has Lists be wrong from now on, until the lie is lifted, used up or over, or another begins.
func (p *Provider) Lie(l Lie) (lift func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.locked(p.cloud.Lie(l))
}

func (p *Provider) locked(do func()) func() {
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		do()
	}
}

// Heal ends all faults and lies. Effects that are late still come.
func (p *Provider) Heal() { p.locked(p.cloud.Heal)() }

// Crash crashes a machine: it stays, and is listed as crashed. It reports whether there was one up.
func (p *Provider) Crash(instance, why string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.cloud.Machine(instance)
	return m != nil && m.Crash(why)
}

// Exit ends a machine in order, by itself.
func (p *Provider) Exit(instance, why string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.cloud.Machine(instance)
	return m != nil && m.Exit(why)
}

// Vanish removes a machine without a call: it is not listed any more. It reports whether
// there was one.
func (p *Provider) Vanish(instance string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.lives[instance]; l != nil && p.cloud.Machine(instance) != nil {
		l.Vanished = true
	}
	return p.cloud.Vanish(instance)
}

// Plant adds a machine that runs, without a call.
func (p *Provider) Plant(req provider.CreateRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cloud.Plant(req)
}

// Machine is an instance's machine as a truthful List shows it; false if there is none.
func (p *Provider) Machine(instance string) (provider.Machine, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.cloud.Machine(instance)
	if m == nil {
		return provider.Machine{}, false
	}
	return m.seen(), true
}

type (
	hitKey struct{}
	lieKey struct{}
)

// TellHit is a context with which a call of a Provider tells, before anything else, which fault it
// is hit by.
func TellHit(ctx context.Context, hit func(Fault)) context.Context {
	return context.WithValue(ctx, hitKey{}, hit)
}

// TellLie is a context with which a List of a Provider tells how it lies.
func TellLie(ctx context.Context, lie func(LieKind)) context.Context {
	return context.WithValue(ctx, lieKey{}, lie)
}
