package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"

	api "github.com/digitalocean/go-libvirt"

	"github.com/leasehold/leasehold/provider"
)

// place is a domain of a machine on one hypervisor.
type place struct {
	h *hypervisor
	d *domain
}

// find looks for a machine's domains, first on the hypervisor where the machine was seen last. It
// ends with a domain for which enough returns true; others are those before it. A migration leaves
// several domains of one machine. The error names the hypervisors that did not answer.
func (p *Provider) find(ctx context.Context, k key, enough func(*domain) bool) (at place, others []place, err error) {
	p.mu.Lock()
	last := p.seen[k]
	p.mu.Unlock()
	order := slices.Clone(p.hypervisors)
	if i := slices.IndexFunc(order, func(h *hypervisor) bool { return h.zone == last }); i > 0 {
		first := order[i]
		order = slices.Insert(slices.Delete(order, i, i+1), 0, first)
	}
	var errs []error
	for _, h := range order {
		d, err := h.find(ctx, k)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("zone %s: %w", h.zone, err))
		case d == nil:
		case enough(d):
			return place{h, d}, others, nil
		default:
			others = append(others, place{h, d})
		}
	}
	return place{}, others, errors.Join(errs...)
}

// everywhere finds a machine: the domain that runs, or else one that is down. Without an answer of
// each hypervisor it is not known to be gone.
func (p *Provider) everywhere(ctx context.Context, k key) (*hypervisor, *domain, error) {
	at, down, err := p.find(ctx, k, func(d *domain) bool { return !d.down() })
	if at.d == nil && len(down) > 0 {
		at, err = down[0], nil
	}
	return at.h, at.d, err
}

// startable finds the domain that a Restart may start. A domain whose guest executes does so on one
// hypervisor alone. Any other is started only after all hypervisors have said that they do not run
// it: two copies would write to the same disks, and only QEMU's lock on an image would stop them.
// Nil if there is no domain.
func (p *Provider) startable(ctx context.Context, k key) (*hypervisor, *domain, error) {
	at, all, err := p.find(ctx, k, (*domain).executes)
	if at.d != nil || err != nil || len(all) == 0 {
		return at.h, at.d, err
	}
	left := slices.DeleteFunc(slices.Clone(all), func(o place) bool { return o.d.down() })
	if len(left) == 0 {
		left = slices.DeleteFunc(slices.Clone(all), func(o place) bool { return o.d.moved() })
	}
	switch len(left) {
	case 0:
		return nil, nil, errMoved
	case 1:
	default:
		return nil, nil, refusal("zones %s and %s have the domain %s, and its guest executes in neither: "+
			"undefine it where its disks are out of date, or wait for its migration",
			left[0].h.zone, left[1].h.zone, left[0].d.Name)
	}
	at = left[0]
	for _, h := range p.hypervisors {
		if h == at.h {
			continue
		}
		switch runs, err := h.runs(ctx, at.d.UUID); {
		case err != nil:
			return nil, nil, fmt.Errorf("zone %s: %w", h.zone, err)
		case runs:
			return nil, nil, refusal("zone %s runs a domain with the UUID of %s in zone %s: it is not started twice",
				h.zone, at.d.Name, at.h.zone)
		}
	}
	return at.h, at.d, nil
}

// runs reports whether a hypervisor runs a domain, whatever its name there.
func (h *hypervisor) runs(ctx context.Context, uuid api.UUID) (runs bool, err error) {
	err = h.use(ctx, func(l *link) error {
		dom, err := l.DomainLookupByUUID(uuid)
		if err != nil {
			return err
		}
		state, _, err := l.DomainGetState(dom, 0)
		runs = err == nil && !isDown(api.DomainState(state))
		return err
	})
	if gone(err) {
		return false, nil
	}
	return runs, h.meaning(err, "")
}

// errMoved: the domain here is what a migration left.
var errMoved = refusal("it was moved to another hypervisor: " +
	"add that one to the provider's zones, or undefine the domain here")

func refusal(format string, args ...any) error {
	return &provider.Error{Kind: provider.Temporary, Message: fmt.Sprintf(format, args...)}
}
