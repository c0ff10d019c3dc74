package cloud

import (
	"context"
	"net"
	"slices"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/memprovider"
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

// Capabilities are those of the memory provider: replicas override them.
func (f *front) Capabilities() provider.Capabilities { return f.c.mem.Capabilities() }

// Validate refuses zones that do not exist.
func (f *front) Validate(t provider.Template) error { return f.c.mem.Validate(t) }

// called records a call and its end.
func (f *front) called(ctx context.Context, call history.Call, do func(context.Context, *history.Call) error) error {
	call.ID, call.Replica = f.c.calls.Add(1), f.replica
	begun := call
	f.c.cfg.Log.Add(history.Event{Call: &begun})
	err := do(memprovider.TellHit(ctx, func(hit memprovider.Fault) {
		if call.Method != history.List { // an answer to that is true, late or none, as far as nobody lies
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
func kindOf(hit memprovider.Fault) string {
	kind := history.Slow
	switch {
	case hit.Hang:
		kind = "hangs"
	case hit.Err != nil:
		kind = "fails"
	}
	switch hit.Effect {
	case memprovider.EffectDone:
		kind += ", done"
	case memprovider.EffectLate:
		kind += history.DoneLate
	case memprovider.EffectNone:
	}
	return kind
}

// Create creates a machine, once.
func (f *front) Create(ctx context.Context, req provider.CreateRequest) (made provider.Machine, err error) {
	err = f.called(ctx, history.Call{Method: history.Create, Instance: req.Bootstrap.Instance, Zone: req.Zone},
		func(ctx context.Context, _ *history.Call) (err error) {
			made, err = f.c.mem.Create(ctx, req)
			made.Address = f.c.reachedAt(made.Instance)
			return err
		})
	return made, err
}

// Stop stops a machine in order, and by force after the timeout.
func (f *front) Stop(ctx context.Context, shard, instance string, timeout time.Duration) error {
	return f.called(ctx, history.Call{Method: history.Stop, Instance: instance},
		func(ctx context.Context, _ *history.Call) error {
			return f.c.mem.Stop(ctx, shard, instance, timeout+killWait)
		})
}

// Delete deletes a machine. It returns when no process of it runs.
func (f *front) Delete(ctx context.Context, shard, instance string) error {
	return f.called(ctx, history.Call{Method: history.Delete, Instance: instance},
		func(ctx context.Context, _ *history.Call) error {
			if err := f.c.mem.Delete(ctx, shard, instance); err != nil {
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
			return f.c.mem.Restart(ctx, shard, instance, boot)
		})
}

// List lists all machines of which something is left, or lies.
func (f *front) List(ctx context.Context, shard string) (found []provider.Machine, err error) {
	err = f.called(ctx, history.Call{Method: history.List}, func(ctx context.Context, call *history.Call) error {
		if found, err = f.c.mem.List(ctx, shard); err != nil {
			return err
		}
		// Machines in transition are listed only after that, so that none is missed between the
		// two.
		for _, m := range f.c.leaving(shard) {
			if !slices.ContainsFunc(found, func(o provider.Machine) bool { return o.Instance == m.Instance }) {
				found = append(found, m)
			}
		}
		for i := range found {
			found[i].Address = f.c.reachedAt(found[i].Instance)
		}
		found, call.Lie, err = f.c.bend(ctx, found)
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

// Inject makes calls fail from now on, until the fault is lifted or used up. For List see
// [Cloud.Lie].
func (c *Cloud) Inject(f memprovider.Fault) (lift func()) { return c.mem.Inject(f) }

// Heal ends all faults and lies. Delayed effects still happen.
func (c *Cloud) Heal() {
	c.mem.Heal()
	c.traffic.mu.Lock()
	c.traffic.fault = nil
	c.traffic.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lie = nil
}
