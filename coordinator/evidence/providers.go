package evidence

import (
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// seeProviders records which providers the running replicas are configured with (PROV-10). A change
// concerns every group with instances.
func (e *Evidence) seeProviders(c *cache.Content) {
	before := e.providers
	now := plan.Providers{
		Known: true, Configured: ownProviders(e.cfg.Capabilities), Dropped: map[plan.ProviderSite]time.Time{},
		Began: before.Began,
	}
	if !before.Known { // until now one may have been configured with anything
		now.Began, before.Dropped = e.cfg.Now(), nil
	}
	for _, id := range slices.Sorted(maps.Keys(c.Replicas)) {
		r := c.Replicas[id]
		now.Records = append(now.Records, r.Unchanged())
		for _, name := range r.Record.Providers {
			capabilities, said := r.Record.Capabilities[name]
			now.Known = now.Known && said // a replica of release 0.1 names no site
			configure(now.Configured, name, capabilities.Site)
		}
	}
	for key := range c.Unreadable {
		if kind, _, _ := e.cfg.Keys.Split(key); kind == store.KindReplicas {
			now.Known = false
		}
	}
	for at, since := range before.Dropped {
		if !now.Configured[at] {
			now.Dropped[at] = since
		}
	}
	for at := range before.Configured {
		if !now.Configured[at] {
			now.Dropped[at] = e.cfg.Now()
		}
	}
	e.providers = now
	if before.Known != now.Known || !maps.Equal(before.Configured, now.Configured) {
		e.markInstances()
	}
}

// ownProviders returns what this coordinator is configured with: it may not have announced itself
// yet.
func ownProviders(capabilities map[string]provider.Capabilities) map[plan.ProviderSite]bool {
	own := map[plan.ProviderSite]bool{}
	for name, c := range capabilities {
		configure(own, name, c.Site)
	}
	return own
}

// configure adds a provider. A machine whose site is not recorded is seen from everywhere.
func configure(all map[plan.ProviderSite]bool, name, site string) {
	all[plan.ProviderSite{Provider: name}] = true
	all[plan.ProviderSite{Provider: name, Site: site}] = true
}
