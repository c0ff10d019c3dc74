package socket

import (
	"context"

	"github.com/leasehold/leasehold/provider"
)

// Machines is the provider's server side, to be registered under the name "Machines". Its methods
// are those of provider.Provider.
type Machines struct {
	within context.Context //nolint:containedctx // net/rpc brings none with a call
	of     func(replica string) provider.Provider
}

// NewMachines answers calls as a provider does; each replica may have another one. A call continues
// after its caller has gone, for the caller's time limit: a cloud would not notice that. All calls
// end with the context.
func NewMachines(ctx context.Context, of func(replica string) provider.Provider) *Machines {
	return &Machines{ctx, of}
}

// Create creates a machine.
func (m *Machines) Create(c Call, a *Answer) error {
	return m.answer(c, a, func(ctx context.Context, p provider.Provider) error {
		made, err := p.Create(ctx, c.Request.contract())
		a.Machines = []provider.Machine{made}
		return err
	})
}

// Stop stops a machine.
func (m *Machines) Stop(c Call, a *Answer) error {
	return m.answer(c, a, func(ctx context.Context, p provider.Provider) error {
		return p.Stop(ctx, c.Shard, c.Instance, c.Timeout)
	})
}

// Delete deletes a machine.
func (m *Machines) Delete(c Call, a *Answer) error {
	return m.answer(c, a, func(ctx context.Context, p provider.Provider) error {
		return p.Delete(ctx, c.Shard, c.Instance)
	})
}

// Restart restarts a machine.
func (m *Machines) Restart(c Call, a *Answer) error {
	return m.answer(c, a, func(ctx context.Context, p provider.Provider) error {
		return p.Restart(ctx, c.Shard, c.Instance, c.Boot)
	})
}

// List lists the machines, or lies.
func (m *Machines) List(c Call, a *Answer) error {
	return m.answer(c, a, func(ctx context.Context, p provider.Provider) (err error) {
		a.Machines, err = p.List(ctx, c.Shard)
		return err
	})
}

func (m *Machines) answer(c Call, a *Answer, call func(context.Context, provider.Provider) error) error {
	ctx := m.within
	if c.Left > 0 {
		limited, cancel := context.WithTimeout(ctx, c.Left)
		defer cancel()
		ctx = limited
	}
	a.Err = spell(call(ctx, m.of(c.Replica)))
	return nil
}
