package cloud

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/memprovider"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// killWait is how much longer than asked a Stop waits for the end of what has to be killed.
const killWait = 10 * time.Second

// front is the cloud as one replica has it.
type front struct {
	c       *Cloud
	replica string
}

var _ provider.Provider = (*front)(nil)

// Capabilities are the memory's: replicas have their own word for them.
func (f *front) Capabilities() provider.Capabilities { return f.c.mem.Capabilities() }

// Validate refuses zones that do not exist.
func (f *front) Validate(t provider.Template) error { return f.c.mem.Validate(t) }

// called writes a call and how it ended.
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

// Create makes a machine, once.
func (f *front) Create(ctx context.Context, req provider.CreateRequest) (made provider.Machine, err error) {
	err = f.called(ctx, history.Call{Method: history.Create, Instance: req.Bootstrap.Instance, Zone: req.Zone},
		func(ctx context.Context, _ *history.Call) (err error) {
			made, err = f.c.mem.Create(ctx, req)
			return err
		})
	return made, err
}

// Stop ends a machine in order, and after the timeout in any case.
func (f *front) Stop(ctx context.Context, shard, instance string, timeout time.Duration) error {
	return f.called(ctx, history.Call{Method: history.Stop, Instance: instance},
		func(ctx context.Context, _ *history.Call) error {
			return f.c.mem.Stop(ctx, shard, instance, timeout+killWait)
		})
}

// Delete removes a machine. It returns when nothing of it runs.
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

// Restart boots a machine again.
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
		// Only now is it asked who is on the way: nobody can have gone from the one and not have
		// come to the other.
		for _, m := range f.c.leaving(shard) {
			if !slices.ContainsFunc(found, func(o provider.Machine) bool { return o.Instance == m.Instance }) {
				found = append(found, m)
			}
		}
		found, call.Lie, err = f.c.bend(ctx, found)
		call.Listed = len(found)
		return err
	})
	return found, err
}

// Inject lets calls go wrong from now on, until the fault is lifted or used up. What List answers
// is the business of [Cloud.Lie].
func (c *Cloud) Inject(f memprovider.Fault) (lift func()) { return c.mem.Inject(f) }

// Heal lifts all faults and lies. Effects that are late still come.
func (c *Cloud) Heal() {
	c.mem.Heal()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lie = nil
}
