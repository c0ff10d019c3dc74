package memprovider

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// machine is one that exists, or did.
type machine struct {
	shard    string
	request  provider.CreateRequest
	number   int
	bootID   string
	booted   time.Time // when the present boot is or will be done
	made     time.Time
	stopping bool
	down     provider.State // "" while it is up
	why      string
	console  []byte         // the end of what it has printed
	used     bool           // it is gone, and its ID used up
	gone     time.Time      // since when
	stale    provider.State // what a List that lags says of it after it is gone

	end  context.CancelCauseFunc // of the present boot
	done chan struct{}           // closed when nothing of the present boot runs
}

func (m *machine) state(now time.Time) provider.State {
	switch {
	case m.down != "":
		return m.down
	case m.stopping:
		select {
		case <-m.done:
			return provider.StateStopped
		default:
			return provider.StateStopping
		}
	case now.Before(m.booted):
		return provider.StateStarting
	default:
		return provider.StateRunning
	}
}

func (m *machine) seen(now time.Time) provider.Machine {
	b := m.request.Bootstrap
	s := provider.Machine{
		Instance: b.Instance, Shard: b.Shard, Group: b.Group, Ref: "mem-" + b.Instance, State: m.state(now), Why: m.why,
		Zone: m.request.Zone, BootID: m.bootID,
	}
	if m.used {
		s.State = m.stale
	}
	return s
}

// listed reports whether a List that lags behind shows the machine.
func (m *machine) listed(now time.Time, lag time.Duration) bool {
	if m.used {
		return m.stale != "" && now.Before(m.gone.Add(lag))
	}
	return !now.Before(m.made.Add(lag))
}

func (p *Provider) remove(m *machine, why *Down) {
	m.end(why)
	m.used, m.gone = true, time.Now()
	p.tell(m)
}

func (p *Provider) tell(m *machine) {
	if p.config.Exists != nil {
		p.config.Exists(m.request.Bootstrap.Instance, m.request.Zone, !m.used)
	}
}

// existing is the shard's machine if it is there.
func (p *Provider) existing(shard, instance string) *machine {
	if m := p.machines[instance]; m != nil && m.shard == shard && !m.used {
		return m
	}
	return nil
}

// make is the effect of a Create.
func (p *Provider) make(req provider.CreateRequest) (provider.Machine, error) {
	b := req.Bootstrap
	if m := p.machines[b.Instance]; m != nil {
		switch {
		case m.shard != b.Shard:
			return provider.Machine{}, fmt.Errorf("create machine %s: the name is taken by shard %s", b.Instance,
				m.shard)
		case m.used:
			return provider.Machine{}, fmt.Errorf("create machine %s: %w", b.Instance, provider.ErrDeleted)
		}
		return m.seen(time.Now()), nil
	}
	inZone := 0
	for _, m := range p.machines {
		if !m.used && m.request.Zone == req.Zone {
			inZone++
		}
	}
	if p.config.Capacity > 0 && inZone >= p.config.Capacity {
		return provider.Machine{}, fmt.Errorf("create machine %s: zone %s is full: %w", b.Instance, req.Zone,
			provider.ErrCapacity)
	}
	m := &machine{shard: b.Shard, request: req, made: time.Now()}
	p.machines[b.Instance] = m
	life := p.life(b.Shard, b.Instance)
	life.Group, life.Slot, life.Zone = b.Group, b.Slot, req.Zone
	life.Made++
	life.MadeAt = m.made
	p.tell(m)
	p.boot(m)
	return m.seen(time.Now()), nil
}

// boot begins a boot, ending the one before.
func (p *Provider) boot(m *machine) {
	before := m.done
	if m.end != nil {
		m.end(&Down{By: CallRestart})
	}
	m.number++
	m.bootID = rand.Text()
	m.booted = time.Now().Add(p.config.BootDelay)
	m.stopping, m.down, m.why = false, "", ""
	p.life(m.shard, m.request.Bootstrap.Instance).Boots++
	ctx, cancel := context.WithCancelCause(context.Background())
	m.end, m.done = cancel, make(chan struct{})
	if p.config.Run == nil || p.closed {
		close(m.done)
		return
	}
	boot := Boot{ID: m.bootID, Number: m.number, Zone: m.request.Zone, Bootstrap: m.request.Bootstrap}
	boot.exit = func(why string) { p.fall(boot.Bootstrap.Instance, boot.ID, provider.StateStopped, why) }
	done := m.done
	p.running.Go(func() {
		defer close(done)
		if before != nil {
			<-before
		}
		t := time.NewTimer(p.config.BootDelay)
		defer t.Stop()
		select {
		case <-ctx.Done():
		case <-t.C:
			p.config.Run(ctx, boot)
		}
	})
}

// Crash crashes a machine: it stays, and is listed as crashed. It reports whether there was one
// running.
func (p *Provider) Crash(instance, why string) bool {
	return p.fall(instance, "", provider.StateCrashed, why)
}

// Exit ends a machine in order, by itself.
func (p *Provider) Exit(instance, why string) bool {
	return p.fall(instance, "", provider.StateStopped, why)
}

// fall has a machine go down. A boot that is named is the only one to end.
func (p *Provider) fall(instance, boot string, s provider.State, why string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.machines[instance]
	if m == nil || m.used || boot != "" && m.bootID != boot || m.state(time.Now()).Down() {
		return false
	}
	m.end(&Down{})
	m.stopping, m.down, m.why = false, s, why
	return true
}

// Vanish removes a machine without a call: it is not listed any more. It reports whether
// there was one.
func (p *Provider) Vanish(instance string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.machines[instance]
	if m == nil || m.used {
		return false
	}
	p.remove(m, &Down{})
	life := p.life(m.shard, instance)
	life.Vanished, life.GoneAt = true, time.Now()
	return true
}
