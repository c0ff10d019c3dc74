package cloud

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake/socket"
)

// Name is the provider's name in the groups of a bench.
const Name = "bench"

// Provider calls the [Cloud] at a socket. It lists from a copy that it updates with the changes, so
// that listing a hundred thousand machines costs the coordinator what it would cost with a real
// cloud, without the cost of sending the list.
type Provider struct {
	*socket.Provider

	mu       sync.Mutex
	seen     int // number of the cloud's changes seen
	machines map[string]provider.Machine
	list     []provider.Machine // the same as a list, built on request; never modified
}

var _ provider.Provider = (*Provider)(nil)

// NewProvider returns a provider, which connects with its first call.
func NewProvider(path string) *Provider {
	return &Provider{
		Provider: socket.NewProvider("", path, Zone), machines: map[string]provider.Machine{},
	}
}

// List lists the machines.
func (p *Provider) List(ctx context.Context, _ string) ([]provider.Machine, error) {
	p.mu.Lock()
	from := p.seen
	p.mu.Unlock()
	news, err := socket.Ask[Changes](ctx, p.Client, "Feed.Changed", from)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// otherwise a List that was answered later has already updated it: an answer holds the machines
	// as of its creation
	if news.Seen > p.seen {
		for _, m := range news.Machines {
			if m.State == "" {
				delete(p.machines, m.Instance)
			} else {
				p.machines[m.Instance] = m
			}
		}
		p.seen = news.Seen
		p.list = slices.AppendSeq(make([]provider.Machine, 0, len(p.machines)), maps.Values(p.machines))
	}
	return slices.Clip(p.list), nil
}
