package foresee

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// Had is what the running coordinators have of the things that groups name.
type Had struct {
	providers, balancers []string
	authorities          map[string]store.AuthorityLimits
	saysAuthorities      bool // all of them do
}

// HadBy returns what replicas report that they have.
func HadBy(replicas []store.Versioned[store.Replica]) Had {
	h := Had{authorities: map[string]store.AuthorityLimits{}, saysAuthorities: len(replicas) > 0}
	for _, r := range replicas {
		for _, p := range r.Record.Providers {
			h.providers = with(h.providers, p)
		}
		for _, b := range r.Record.Balancers {
			h.balancers = with(h.balancers, b)
		}
		maps.Copy(h.authorities, r.Record.Authorities)
		h.saysAuthorities = h.saysAuthorities && r.Record.Authorities != nil
	}
	return h
}

// Lacks returns what a group names and no running coordinator has: the leader refuses it.
func (h Had) Lacks(g *store.Group) (all []string) {
	if len(h.providers) == 0 { // none runs
		return nil
	}
	lacks := func(kind, name string, have []string) {
		all = append(all, fmt.Sprintf("no running coordinator has the %s %q; they have: %s", kind, name, listed(have)))
		if kind != "provider" {
			all[len(all)-1] += "; their file of providers names those"
		}
	}
	if g.Provider != store.ProviderNone && !slices.Contains(h.providers, g.Provider) {
		lacks("provider", g.Provider, h.providers)
	}
	for _, b := range g.LoadBalancers {
		if !slices.Contains(h.balancers, b.Name) {
			lacks("load balancer", b.Name, h.balancers)
		}
	}
	names := slices.Sorted(maps.Keys(h.authorities))
	for i, f := range g.Files {
		c := f.Certificate
		if c == nil || !h.saysAuthorities {
			continue
		}
		switch limits, known := h.authorities[c.Authority]; {
		case !known:
			lacks("authority", c.Authority, names)
		case c.Lifetime > limits.MaxLifetime:
			all = append(all, fmt.Sprintf("files[%d].certificate.lifetime: %s: authority %s allows at most %s", i, c.Lifetime,
				c.Authority, limits.MaxLifetime))
		}
	}
	return all
}

// Foreign returns the names of certificates that their authority will not certify for any instance.
// The file is then delivered to none of them.
func (h Had) Foreign(g *store.Group) (all []string) {
	for i, f := range g.Files {
		c := f.Certificate
		if c == nil {
			continue
		}
		limits, known := h.authorities[c.Authority]
		for n, name := range c.Names {
			if known && limits.Forbids(name) {
				all = append(all, fmt.Sprintf("files[%d].certificate.names[%d]: %q: authority %s does not certify it: "+
					"it is for domains %s and networks %s", i, n, name, c.Authority, listed(limits.Domains),
					listed(limits.Networks)))
			}
		}
	}
	return all
}

func listed[T any](list []T) string {
	if len(list) == 0 {
		return "none"
	}
	var texts []string
	for _, x := range list {
		texts = append(texts, fmt.Sprint(x))
	}
	return strings.Join(texts, ", ")
}
