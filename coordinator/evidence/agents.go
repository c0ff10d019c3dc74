package evidence

import (
	"maps"
	"slices"

	"github.com/leasehold/leasehold/agent/version"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/plan"
)

// seeAgents marks the groups with agent upgrades as dirty if the served versions have changed.
func (e *Evidence) seeAgents(c *cache.Content) {
	now, all := agents(c), noneAway(c)
	if slices.Equal(now, e.agents) && all == e.noneAway {
		return
	}
	e.agents, e.noneAway = now, all
	for group, status := range c.Status {
		if spec := status.Record.Accepted; spec != nil && spec.Agent.Version != "" {
			e.dirty[group] = true
		}
	}
}

// agents returns the versions of the agent that replicas serve, the latest last. A version without
// a release has no order, and comes first.
func agents(c *cache.Content) []plan.AgentVersion {
	var found []plan.AgentVersion
	for _, id := range slices.Sorted(maps.Keys(c.Replicas)) {
		r := c.Replicas[id].Record
		for _, release := range r.AgentReleases {
			known := func(v plan.AgentVersion) bool { return v.Version == release.Version }
			if r.Downloads != "" && !slices.ContainsFunc(found, known) {
				found = append(found, plan.AgentVersion{Version: release.Version})
			}
		}
	}
	for i := range found {
		for _, id := range slices.Sorted(maps.Keys(c.Replicas)) {
			if of := c.Replicas[id].Record.Version; version.Later(found[i].Version, of) {
				found[i].Before, found[i].BeforeOf = id, of
			}
		}
	}
	slices.SortFunc(found, func(a, b plan.AgentVersion) int { return version.Compare(a.Version, b.Version) })
	return found
}

// noneAway reports whether every coordinator that a leader has seen in the last day is running,
// under its name or at its address.
func noneAway(c *cache.Content) bool {
	if !c.Served.Present() {
		return false
	}
	for _, seen := range c.Served.Record.Replicas {
		if _, here := c.Replicas[seen.ID]; here {
			continue
		}
		there := false
		for _, r := range c.Replicas {
			there = there || seen.Address != "" && r.Record.Address == seen.Address
		}
		if !there {
			return false
		}
	}
	return len(c.Replicas) > 0
}
