package fake

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// Inside is what runs in a Provider's machines. Each function may be nil.
type Inside struct {
	// Run is what a machine does: it is called in a goroutine once the machine has booted,
	// with a context that ends when the machine goes down. It must then return. The context's cause
	// is a *Down, unless the provider was closed.
	Run func(context.Context, Boot)
	// Observe is called when something has become of a machine, also if the call's answer is lost or
	// its effect late. It is called with the provider's lock held and must not call the provider.
	Observe func(e Event, instance, zone string)
	// Leaving are the machines of a shard that were removed though something of them still runs:
	// Lists show them. It is called as Observe is.
	Leaving func(shard string) []provider.Machine
	// Address is where a machine's workload is reached. It is called as Observe is.
	Address func(instance string) string
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

// boot is what runs in a machine.
type boot struct {
	end  context.CancelCauseFunc
	done chan struct{} // closed when nothing of it runs
}

func (b *boot) over() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// boot begins to run what is in a machine, after what ran before.
func (p *Provider) boot(m *Machine) {
	p.lives[m.ID].Boots++
	if p.inside.Run == nil || p.closed {
		return
	}
	before := p.boots[m.ID]
	ctx, cancel := context.WithCancelCause(context.Background())
	now := &boot{end: cancel, done: make(chan struct{})}
	p.boots[m.ID] = now
	b := Boot{ID: m.BootID(), Number: m.Boots, Zone: m.Zone(), Bootstrap: m.Request.Bootstrap}
	b.exit = func(why string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if m.BootID() == b.ID {
			m.Exit(why)
		}
	}
	p.running.Go(func() {
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			close(now.done)
			if p.boots[m.ID] == now {
				m.Ended()
			}
		}()
		if before != nil {
			<-before.done
		}
		t := time.NewTimer(p.cloud.cfg.Boot)
		defer t.Stop()
		select {
		case <-ctx.Done():
		case <-t.C:
			p.inside.Run(ctx, b)
		}
	})
}

func (p *Provider) end(m *Machine, how Down) (busy bool) {
	b := p.boots[m.ID]
	if b == nil {
		return false
	}
	b.end(&how)
	return !b.over()
}

// awaitStop waits until nothing runs in a machine that was stopped. What takes longer is left
// behind.
func (p *Provider) awaitStop(ctx context.Context, shard, instance string, timeout time.Duration) error {
	p.mu.Lock()
	m, b := p.cloud.existing(shard, instance), p.boots[instance]
	p.mu.Unlock()
	if m == nil || b == nil {
		return nil
	}
	limit := time.NewTimer(timeout)
	defer limit.Stop()
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-limit.C:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.boots[instance] == b {
		m.Ended()
	}
	return nil
}

// observe keeps the ledger, and passes on what happens to machines.
func (p *Provider) observe(e Event, m *Machine) {
	life, now := p.life(m.shard(), m.ID), time.Now()
	switch e {
	case Made:
		b := m.Request.Bootstrap
		life.Group, life.Slot, life.Zone = b.Group, b.Slot, m.Zone()
		life.Made++
		life.MadeAt = now
	case Removed:
		life.GoneAt = now
		if !life.Vanished {
			life.Deleted++
		}
	default:
	}
	if p.inside.Observe != nil {
		p.inside.Observe(e, m.ID, m.Zone())
	}
}
