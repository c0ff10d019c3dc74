package evidence

import (
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// listForeign records the machines without a record that the provider did not make. They are shown
// to operators, and nothing is decided on them: an operator copied them, tags included, from
// another machine.
func (e *Evidence) listForeign(name string, machines []provider.Machine, c *cache.Content) {
	before := e.foreign[name]
	now := map[string]store.Extra{}
	for i := range machines {
		m := &machines[i]
		if _, extra := e.extras[m.Instance]; !m.Foreign || extra || e.recorded(c, m.Instance) {
			continue
		}
		x := store.Extra{
			Schema: store.Schema, Instance: m.Instance, Group: m.Group, Provider: name, Zone: m.Zone, Ref: m.Ref,
			State: string(m.State), Since: e.cfg.Now().UTC().Round(time.Second), Foreign: true,
		}
		if old, seen := before[m.Instance]; seen {
			x.Since = old.Since
		}
		if other, more := now[m.Instance]; !more || x.Ref < other.Ref {
			now[m.Instance] = x // one of them is enough to find the others
		}
	}
	e.foreign[name] = now
}

// Extras returns at most so many machines without a record, in order of instance: see store.Extra.
func (e *Evidence) Extras(c *cache.Content, most int) []store.Extra {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := map[string]store.Extra{}
	for _, foreign := range e.foreign {
		for id, x := range foreign {
			if !e.recorded(c, id) {
				all[id] = x
			}
		}
	}
	now := e.cfg.Now()
	filled := fillings{}
	for id, x := range e.extras {
		e.judgeExtra(c, &x, filled)
		all[id] = store.Extra{
			Schema: store.Schema, Instance: id, Group: x.Group, Provider: x.Provider, Zone: x.Zone, Ref: x.Ref,
			State: x.State,
			Since: now.UTC().Add(x.Since.Sub(now)).Round(time.Second), Gone: x.Gone,
		}
	}
	var out []store.Extra
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if len(out) == most {
			break
		}
		out = append(out, all[id])
	}
	return out
}
