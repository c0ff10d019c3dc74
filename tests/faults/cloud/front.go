package cloud

import (
	"context"
	"net"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// killWait is how much longer than its timeout a Stop waits for the end of killed processes.
const killWait = 10 * time.Second

// front is the cloud as one replica sees it.
type front struct {
	c       *Cloud
	replica string
}

var _ provider.Provider = (*front)(nil)

// Capabilities returns the fake cloud's: replicas override them.
func (f *front) Capabilities() provider.Capabilities { return f.c.provider.Capabilities() }

// Validate refuses zones that do not exist.
func (f *front) Validate(t provider.Template) error { return f.c.provider.Validate(t) }

// called records a call and its end.
func (f *front) called(ctx context.Context, call history.Call, do func(context.Context, *history.Call) error) error {
	call.ID, call.Replica = f.c.calls.Add(1), f.replica
	begun := call
	f.c.cfg.Log.Add(history.Event{Call: &begun})
	err := do(fake.TellHit(ctx, func(hit fake.Fault) {
		if call.Method != history.List { // an answer to that is true, late or none, unless a lie was set
			call.Lie = kindOf(hit)
		}
	}), &call)
	call.Ended = true
	if err != nil && ctx.Err() == nil {
		call.Err = err.Error()
	}
	f.c.cfg.Log.Add(history.Event{Call: &call})
	return err
}

// kindOf returns how a call goes wrong.
func kindOf(hit fake.Fault) string {
	kind := history.Slow
	switch {
	case hit.Hang:
		kind = "hangs"
	case hit.Err != nil:
		kind = "fails"
	}
	switch hit.Effect {
	case fake.EffectDone:
		kind += ", done"
	case fake.EffectLate:
		kind += history.DoneLate
	case fake.EffectNone:
	}
	return kind
}

// Create creates a machine, once.
func (f *front) Create(ctx context.Context, req provider.CreateRequest) (made provider.Machine, err error) {
	err = f.called(ctx, history.Call{Method: history.Create, Instance: req.Bootstrap.Instance, Zone: req.Zone},
		func(ctx context.Context, _ *history.Call) (err error) {
			made, err = f.c.provider.Create(ctx, req)
			return err
		})
	return made, err
}

// Stop stops a machine in order, and by force after the timeout.
func (f *front) Stop(ctx context.Context, shard, instance string, timeout time.Duration) error {
	return f.called(ctx, history.Call{Method: history.Stop, Instance: instance},
		func(ctx context.Context, _ *history.Call) error {
			return f.c.provider.Stop(ctx, shard, instance, timeout+killWait)
		})
}

// Delete deletes a machine. It returns when no process of it runs.
func (f *front) Delete(ctx context.Context, shard, instance string) error {
	return f.called(ctx, history.Call{Method: history.Delete, Instance: instance},
		func(ctx context.Context, _ *history.Call) error {
			if err := f.c.provider.Delete(ctx, shard, instance); err != nil {
				return err
			}
			m := f.c.machine(instance)
			if m == nil {
				return nil
			}
			select {
			case <-m.gone:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
}

// Restart restarts a machine.
func (f *front) Restart(ctx context.Context, shard, instance, boot string) error {
	return f.called(ctx, history.Call{Method: history.Restart, Instance: instance},
		func(ctx context.Context, _ *history.Call) error {
			return f.c.provider.Restart(ctx, shard, instance, boot)
		})
}

// List lists all machines, or lies.
func (f *front) List(ctx context.Context, shard string) (found []provider.Machine, err error) {
	err = f.called(ctx, history.Call{Method: history.List}, func(ctx context.Context, call *history.Call) error {
		found, err = f.c.provider.List(fake.TellLie(ctx, func(lie fake.LieKind) { call.Lie = string(lie) }), shard)
		call.Listed = len(found)
		return err
	})
	return found, err
}

// reachedAt is where a load balancer would reach a machine; "" if it never existed.
func (c *Cloud) reachedAt(instance string) string {
	if m := c.machine(instance); m != nil {
		return net.JoinHostPort(m.address, "80")
	}
	return ""
}

// Inject makes calls fail from now on, until the fault is lifted or used up.
func (c *Cloud) Inject(f fake.Fault) (lift func()) { return c.provider.Inject(f) }

// Lie makes List lie from now on, until the lie is lifted or used up, or another one begins.
func (c *Cloud) Lie(l fake.Lie) (lift func()) { return c.provider.Lie(l) }

// Heal ends all faults and lies. Delayed effects still happen.
func (c *Cloud) Heal() {
	c.provider.Heal()
	c.traffic.mu.Lock()
	defer c.traffic.mu.Unlock()
	c.traffic.fault = nil
}
