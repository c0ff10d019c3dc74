package lxd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// List asks for the containers with the shard's tag, and for the names of all. LXD leaves a
// container that it cannot reach out of what it filters, and in the names.
func (p *Provider) List(ctx context.Context, shard string) ([]provider.Machine, error) {
	machines, err := p.list(ctx, shard)
	if err != nil {
		return nil, fmt.Errorf("list machines: %w", p.kindOf(err, ""))
	}
	return machines, nil
}

func (p *Provider) list(ctx context.Context, shard string) ([]provider.Machine, error) {
	begun := time.Now()
	// A project that is not there has no containers, and no error, in the answer of LXD 5.0.
	if _, err := p.client.call(ctx, request{
		method: http.MethodGet, path: "/1.0/projects/" + url.PathEscape(p.project),
	}, nil); err != nil {
		return nil, err
	}
	var urls []string
	if _, err := p.client.call(ctx, request{method: http.MethodGet, path: "/1.0/instances"}, &urls); err != nil {
		return nil, err
	}
	if urls == nil { // LXD says [] of none
		return nil, errors.New("the answer of LXD is not a list of containers")
	}
	var found []*container
	if _, err := p.client.call(ctx, request{
		method: http.MethodGet, path: "/1.0/instances",
		query: url.Values{"recursion": {"1"}, "filter": {"config." + tagShard + " eq " + shard}},
	}, &found); err != nil {
		return nil, err
	}
	listed := map[string]bool{}
	var ours []*container
	for _, c := range found {
		if c == nil || c.Name == "" {
			return nil, errors.New("the list of containers has one without a name")
		}
		listed[c.Name] = true
		if c.isOf(shard, c.Config[tagInstance]) {
			ours = append(ours, c)
		}
	}
	p.learn(ctx, ours)
	machines := make([]provider.Machine, 0, len(ours))
	for _, c := range ours {
		m := p.machine(c, begun)
		m.BootID, m.Address = p.bootOf(c), p.knownOf(c).address
		machines = append(machines, m)
	}
	p.forget(urls)
	for _, u := range urls {
		name := nameIn(u)
		if listed[name] || !strings.HasPrefix(name, prefix) {
			continue
		}
		m, ours, err := p.hidden(ctx, name, shard, begun)
		if err != nil {
			return nil, fmt.Errorf("LXD has a container %s and does not show it: "+
				"it is unknown whether it belongs to this shard: %w", name, err)
		}
		if ours {
			machines = append(machines, m)
		}
	}
	return machines, ctx.Err()
}

// betweenBoots is for how long a container must be seen down before its end counts as one. LXD does
// not tell an end from a reboot: it takes the container down, says Stopped, and starts it again,
// mostly within a second.
const betweenBoots = 4 * time.Second

// machine is what a List that began at a time says of a container.
func (p *Provider) machine(c *container, begun time.Time) provider.Machine {
	m := c.machine(time.Now(), p.timeout)
	if m.State != provider.StateCrashed {
		p.update(c, func(k *known) { k.down = time.Time{} })
		return m
	}
	if c.restored() {
		m.State, m.Why = provider.StateUnknown, "LXD did not see its end, and starts it again when LXD is started"
		return m
	}
	var first time.Time
	p.update(c, func(k *known) {
		if k.down.IsZero() {
			k.down = time.Now()
		}
		first = k.down
	})
	if begun.Sub(first) < betweenBoots {
		m.State, m.Unsettled = provider.StateUnknown, true
		m.Why = "the container has ended, and not by a Stop of Leasehold's: it may be between two boots"
	}
	return m
}

// forget drops what is known of containers that are not there any more.
func (p *Provider) forget(urls []string) {
	there := make(map[string]bool, len(urls))
	for _, u := range urls {
		there[nameIn(u)] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.known {
		if !there[name] {
			delete(p.known, name)
			delete(p.consoles, name)
		}
	}
}

// nameIn is the name in the address of a container.
func nameIn(address string) string {
	address, _, _ = strings.Cut(address, "?")
	name := address[strings.LastIndex(address, "/")+1:]
	if plain, err := url.PathUnescape(name); err == nil {
		return plain
	}
	return name
}

// hidden looks at a container whose name is listed and which the filter left out: most belong to
// another shard.
func (p *Provider) hidden(ctx context.Context, name, shard string, begun time.Time) (provider.Machine, bool, error) {
	p.mu.Lock()
	k, is := p.known[name]
	p.mu.Unlock()
	if is && k.shard != shard {
		return provider.Machine{}, false, nil
	}
	c, ok, err := p.look(ctx, name)
	switch {
	case err == nil && !ok:
		return provider.Machine{}, false, nil // deleted since
	case err == nil && c.Config[tagShard] != shard:
		p.update(c, func(*known) {})
		return provider.Machine{}, false, nil
	case err == nil:
		return p.machine(c, begun), true, nil // made since
	case is && ctx.Err() == nil:
		return provider.Machine{
			Instance: k.instance, Shard: k.shard, Group: k.group, Zone: k.zone, Ref: name, BootID: k.boot, Address: k.address,
			State: provider.StateUnknown, Why: err.Error(), Foreign: name != nameOf(k.instance),
		}, true, nil
	}
	return provider.Machine{}, false, err
}
