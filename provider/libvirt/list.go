package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	api "github.com/digitalocean/go-libvirt"

	"github.com/leasehold/leasehold/provider"
)

// domains reads a hypervisor's domains whose names have the prefix and that have our metadata.
// Those whose metadata cannot be read are an error of its own.
func domains(l *link, prefix string) (out []*domain, unreadable, err error) {
	all, _, err := l.ConnectListAllDomains(1, 0)
	if err != nil {
		return nil, nil, err
	}
	for _, dom := range all {
		if !strings.HasPrefix(dom.Name, prefix) {
			continue
		}
		d, err := read(l, dom)
		switch {
		case gone(err), errors.Is(err, errForeign):
		case errors.As(err, new(*damaged)):
			unreadable = errors.Join(unreadable, err)
		case err != nil:
			return nil, nil, err
		default:
			out = append(out, d)
		}
	}
	return out, unreadable, nil
}

// List asks all hypervisors. If one does not answer, nothing is known of its machines, and the
// whole List is an error.
func (p *Provider) List(ctx context.Context, shard string) ([]provider.Machine, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list machines: %w", err)
	}
	type answer struct {
		machines []sighting
		err      error
	}
	answers := make([]answer, len(p.hypervisors))
	var wg sync.WaitGroup
	for i, h := range p.hypervisors {
		wg.Go(func() {
			machines, err := p.listOne(ctx, h, shard)
			if err != nil {
				err = fmt.Errorf("zone %s: %w", h.zone, h.meaning(err, ""))
			}
			answers[i] = answer{machines, err}
		})
	}
	wg.Wait()
	var all []sighting
	var errs []error
	for _, a := range answers {
		all, errs = append(all, a.machines...), append(errs, a.err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("list machines: %w", err)
	}
	machines := withoutRemnants(all)
	p.remember(shard, machines)
	return machines, nil
}

// sighting is a machine as one hypervisor has it.
type sighting struct {
	provider.Machine
	uuid api.UUID
	down bool
}

// withoutRemnants leaves out domains that are down while another hypervisor runs the same domain: a
// migration left them behind.
func withoutRemnants(all []sighting) []provider.Machine {
	runs := map[api.UUID]bool{}
	for _, s := range all {
		runs[s.uuid] = runs[s.uuid] || !s.down
	}
	machines := []provider.Machine{}
	for _, s := range all {
		if !s.down || !runs[s.uuid] {
			machines = append(machines, s.Machine)
		}
	}
	return machines
}

func (p *Provider) listOne(ctx context.Context, h *hypervisor, shard string) (machines []sighting, err error) {
	err = h.use(ctx, func(l *link) error {
		all, unreadable, err := domains(l, prefixOf(shard))
		if err = errors.Join(err, unreadable); err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(d *domain) bool { return d.Shard != shard || d.Instance == "" })
		addresses := p.addressesOf(l, all)
		for _, d := range all {
			m := d.machine(h.zone, p.timeout)
			m.Address = addresses[d.Name]
			machines = append(machines, sighting{m, d.UUID, d.down()})
		}
		return nil
	})
	return machines, err
}

// addressesOf asks the DHCP servers of libvirt's networks. What they do not know is not known:
// others' DHCP servers are not asked.
func (p *Provider) addressesOf(l *link, all []*domain) map[string]string {
	byMAC, asked := map[string]string{}, map[string]bool{}
	out := map[string]string{}
	for _, d := range all {
		for i, network := range d.Networks {
			if !asked[network] && !d.down() {
				asked[network] = true
				leases(l, network, byMAC)
			}
			if address := byMAC[macOf(d.Name, i)]; address != "" && out[d.Name] == "" {
				out[d.Name] = address
			}
		}
	}
	return out
}

// leases adds the addresses that a network's DHCP server has given, IPv4 before IPv6.
func leases(l *link, network string, byMAC map[string]string) {
	n, err := l.NetworkLookupByName(network)
	if err != nil {
		return
	}
	all, _, err := l.NetworkGetDhcpLeases(n, nil, 1, 0)
	if err != nil {
		return
	}
	for _, lease := range all {
		const ipv4 = 0
		if len(lease.Mac) > 0 && (lease.Type == ipv4 || byMAC[lease.Mac[0]] == "") {
			byMAC[lease.Mac[0]] = lease.Ipaddr
		}
	}
}

// learn keeps where a machine is.
func (p *Provider) learn(k key, zone string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[k] = zone
}

// remember keeps what a List has shown, and forgets machines that it has not. An address stays
// until there is another: a machine that boots has none for a while.
func (p *Provider) remember(shard string, machines []provider.Machine) {
	there := map[key]string{}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, m := range machines {
		k := key{shard, m.Instance}
		there[k] = m.Zone
		if m.Address != "" {
			p.addresses[k] = m.Address
		}
		machines[i].Address = p.addresses[k]
	}
	for k := range p.seen {
		if k.shard == shard && there[k] == "" {
			delete(p.seen, k)
			delete(p.addresses, k)
		}
	}
	for k, zone := range there {
		p.seen[k] = zone
	}
}
