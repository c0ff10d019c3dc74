package socket

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// Provider creates machines in the process that serves a socket.
type Provider struct {
	*Client
	CallTimeout time.Duration // time limit of every call; 0: 40s

	replica string
	zones   []string
}

var _ provider.Provider = (*Provider)(nil)

// NewProvider returns a replica's provider, which connects with the first call. Its zones are a and
// b if none are named.
func NewProvider(replica, socket string, zones ...string) *Provider {
	if len(zones) == 0 {
		zones = []string{"a", "b"}
	}
	return &Provider{Client: NewClient(socket), replica: replica, zones: zones}
}

// Capabilities are those of a provider that answers within seconds and forgets nothing.
func (p *Provider) Capabilities() provider.Capabilities {
	return provider.Capabilities{Zones: slices.Clone(p.zones), CallTimeout: cmp.Or(p.CallTimeout, 40*time.Second)}
}

// Validate accepts every template.
func (*Provider) Validate(provider.Template) error { return nil }

// Create creates a machine.
func (p *Provider) Create(ctx context.Context, req provider.CreateRequest) (provider.Machine, error) {
	a, err := p.call(ctx, "Create", Call{Request: spelled(req)})
	if err != nil || len(a.Machines) == 0 {
		return provider.Machine{}, err
	}
	return a.Machines[0], nil
}

// Stop stops a machine.
func (p *Provider) Stop(ctx context.Context, shard, instance string, timeout time.Duration) error {
	_, err := p.call(ctx, "Stop", Call{Shard: shard, Instance: instance, Timeout: timeout})
	return err
}

// Delete deletes a machine.
func (p *Provider) Delete(ctx context.Context, shard, instance string) error {
	_, err := p.call(ctx, "Delete", Call{Shard: shard, Instance: instance})
	return err
}

// Restart restarts a machine.
func (p *Provider) Restart(ctx context.Context, shard, instance, boot string) error {
	_, err := p.call(ctx, "Restart", Call{Shard: shard, Instance: instance, Boot: boot})
	return err
}

// List lists the machines, or lies.
func (p *Provider) List(ctx context.Context, shard string) ([]provider.Machine, error) {
	a, err := p.call(ctx, "List", Call{Shard: shard})
	return a.Machines, err
}

func (p *Provider) call(ctx context.Context, method string, call Call) (Answer, error) {
	call.Replica, call.Left = p.replica, Left(ctx)
	return Ask[Answer](ctx, p.Client, "Machines."+method, call)
}
