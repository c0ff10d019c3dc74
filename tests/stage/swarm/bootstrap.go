package swarm

import (
	"fmt"
	"sync"

	"github.com/leasehold/leasehold/provider"
)

// papers are the bootstrap documents of machines that were created without an agent.
type papers struct {
	mu   sync.Mutex
	keep bool
	kept map[string]provider.Bootstrap // by instance
}

// keeps reports whether the machine starts no agent, and stores its bootstrap document then.
func (p *papers) keeps(b provider.Bootstrap) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.keep {
		return false
	}
	if p.kept == nil {
		p.kept = map[string]provider.Bootstrap{}
	}
	p.kept[b.Instance] = b
	return true
}

// KeepPapers makes machines that are created from now on start no agent, or start one again. Papers
// returns their bootstrap documents.
func (c *Control) KeepPapers(keep bool) error {
	return c.client.Call("Control.KeepPapers", keep, new(bool))
}

// Papers returns the bootstrap document of a machine that starts no agent.
func (c *Control) Papers(instance string) (provider.Bootstrap, error) {
	var b provider.Bootstrap
	err := c.client.Call("Control.Papers", instance, &b)
	return b, err
}

func (v *service) KeepPapers(keep bool, _ *bool) error {
	v.s.papers.mu.Lock()
	defer v.s.papers.mu.Unlock()
	v.s.papers.keep = keep
	return nil
}

func (v *service) Papers(instance string, b *provider.Bootstrap) error {
	v.s.papers.mu.Lock()
	defer v.s.papers.mu.Unlock()
	found, ok := v.s.papers.kept[instance]
	if !ok {
		return fmt.Errorf("%s: no machine of this name was made without an agent", instance)
	}
	*b = found
	return nil
}
