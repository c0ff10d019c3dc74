package cloud

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/rpc"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// Name is the provider's name in the groups of a bench.
const Name = "bench"

// Provider calls the [Cloud] at a socket. It lists from a copy that it updates with the changes, so
// that listing a hundred thousand machines costs the coordinator what it would cost with a real
// cloud, without the cost of sending the list.
type Provider struct {
	socket string

	mu       sync.Mutex
	client   *rpc.Client
	seen     int // number of the cloud's changes seen
	machines map[string]provider.Machine
	list     []provider.Machine // the same as a list, built on request; never modified
}

var _ provider.Provider = (*Provider)(nil)

// NewProvider returns a provider, which connects with its first call.
func NewProvider(socket string) *Provider {
	return &Provider{socket: socket, machines: map[string]provider.Machine{}}
}

// Capabilities describe a provider that answers within seconds and forgets nothing.
func (*Provider) Capabilities() provider.Capabilities {
	return provider.Capabilities{Zones: []string{Zone}, CallTimeout: 40 * time.Second}
}

// Validate accepts every template.
func (*Provider) Validate(provider.Template) error { return nil }

// Create creates a machine, which runs at once.
func (p *Provider) Create(ctx context.Context, req provider.CreateRequest) (provider.Machine, error) {
	var made provider.Machine
	err := p.call(ctx, "Create", req.Bootstrap.Instance, &made)
	made.Group = req.Bootstrap.Group
	return made, err
}

// Stop stops a machine.
func (p *Provider) Stop(ctx context.Context, _, instance string, _ time.Duration) error {
	return p.call(ctx, "Stop", instance, new(bool))
}

// Delete deletes a machine.
func (p *Provider) Delete(ctx context.Context, _, instance string) error {
	return p.call(ctx, "Delete", instance, new(bool))
}

// Restart is never called: no group of a bench restarts machines.
func (*Provider) Restart(_ context.Context, _, instance, _ string) error {
	return fmt.Errorf("restart %s: a bench restarts no machine", instance)
}

// List lists the machines.
func (p *Provider) List(ctx context.Context, shard string) ([]provider.Machine, error) {
	p.mu.Lock()
	from := p.seen
	p.mu.Unlock()
	var news Changes
	if err := p.call(ctx, "Changed", from, &news); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// otherwise a List that was answered later has already updated it: an answer holds the machines
	// as of its creation
	if news.Seen > p.seen {
		for _, m := range news.Machines {
			if m.State == gone {
				delete(p.machines, m.Instance)
			} else {
				m.Shard = shard
				p.machines[m.Instance] = m
			}
		}
		p.seen = news.Seen
		p.list = slices.AppendSeq(make([]provider.Machine, 0, len(p.machines)), maps.Values(p.machines))
	}
	return slices.Clip(p.list), nil
}

func (p *Provider) call(ctx context.Context, method string, what, answer any) error {
	client, err := p.connect(ctx)
	if err != nil {
		return err
	}
	done := client.Go("Cloud."+method, what, answer, make(chan *rpc.Call, 1)).Done
	select {
	case <-ctx.Done():
		return ctx.Err()
	case ended := <-done:
		return ended.Error
	}
}

func (p *Provider) connect(ctx context.Context) (*rpc.Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client == nil {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", p.socket)
		if err != nil {
			return nil, fmt.Errorf("find the bench: %w", err) // the bench has ended, and this process with it
		}
		p.client = rpc.NewClient(conn)
	}
	return p.client, nil
}
