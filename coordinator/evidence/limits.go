package evidence

import (
	"maps"
	"slices"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// Limits returns the limits of the shard and what is used of them (CAP-1). Counting covers the
// records of the whole shard; a shard without limits pays nothing for it.
func Limits(c *cache.Content) []plan.Limit {
	s := &c.Shard.Record.Settings
	var all []plan.Limit
	if s.LimitInstances > 0 {
		all = append(all, plan.Limit{Name: "limit_instances", Most: s.LimitInstances})
	}
	for name, most := range inOrder(s.LimitByProvider.ByName()) {
		all = append(all, plan.Limit{Name: "limit_by_provider " + name, Provider: name, Most: most})
	}
	for label, most := range inOrder(s.LimitByLabel.ByName()) {
		all = append(all, plan.Limit{Name: "limit_by_label " + label, Label: label, Most: most})
	}
	if len(all) == 0 {
		return nil
	}
	for group, ids := range c.ByGroup {
		labels := inForce(c, group).Labels
		for _, id := range ids {
			provider := c.Instances[id].Record.Spec.Provider
			for i := range all {
				if all[i].Covers(provider, labels) {
					all[i].Used++
				}
			}
		}
	}
	for group, slots := range c.Slots {
		g := inForce(c, group)
		if g.Stopped || g.Deleting || g.Paused {
			continue // nothing is made for them now
		}
		for _, sl := range slots {
			if sl.Record.Vacated == nil || sl.Record.Errored != "" {
				continue
			}
			for i := range all {
				if all[i].Covers(g.Provider, g.Labels) {
					all[i].Vacant++
				}
			}
		}
	}
	return all
}

// inForce returns a group's spec in force; an empty one if there is none.
func inForce(c *cache.Content, group string) store.Group {
	if g := c.Status[group].Record.Accepted; g != nil {
		return *g
	}
	return store.Group{}
}

// inOrder returns the limits in order of name; 0 means none.
func inOrder(byName map[string]int) func(yield func(string, int) bool) {
	return func(yield func(string, int) bool) {
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			if most := byName[name]; most > 0 && !yield(name, most) {
				return
			}
		}
	}
}
