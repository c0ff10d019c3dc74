// Package bootstrap makes what a new machine needs to become an instance: the document for its
// agent, and where it fetches the agent. The leader hands both to a provider; the command line
// prints them for a machine that an operator sets up by hand (PROV-9).
package bootstrap

import (
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// Shard is what the bootstrap document of every machine of a shard contains.
type Shard struct {
	ID, Name string
	Settings store.ShardSettings
	Replicas map[string]store.Replica // by ID
	CA       string                   // PEM of the authorities that agents trust; empty: streams are not encrypted
}

// Coordinators are the addresses of the replicas that serve agents, in order of the replicas' IDs.
func (s *Shard) Coordinators() []string {
	var addresses []string
	for _, id := range slices.Sorted(maps.Keys(s.Replicas)) {
		if address := s.Replicas[id].Address; address != "" {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// Document is the bootstrap document of an instance whose machine joins with a token.
func (s *Shard) Document(rec store.Instance, token string) provider.Bootstrap {
	fence := rec.Spec.Report.OnLeaseLost
	if !fence.Fences() {
		fence = store.LeaseLost{}
	}
	return provider.Bootstrap{
		Schema: provider.BootstrapSchema, Instance: rec.ID, Group: rec.Group, Slot: rec.Slot, Zone: rec.Zone,
		Name: rec.Spec.NameIn(rec.Group, rec.Slot, rec.ID), Facts: rec.Facts(s.Name),
		Made: rec.Created.UTC().Format(time.RFC3339), Shard: s.ID, ShardName: s.Name,
		Coordinators:   s.Coordinators(),
		ReportInterval: rec.Spec.Report.Interval.String(), ReconnectMin: s.Settings.ReconnectMin.String(),
		ReconnectMax: s.Settings.ReconnectMax.String(),
		Run:          rec.Spec.Workload.Run, Vars: rec.Spec.Vars, Secrets: rec.Spec.Secrets,
		StopTimeout: rec.Spec.StopTimeout.String(),
		Lifecycle:   rec.Spec.Lifecycle, OnLeaseLost: fence.Do, OnLeaseLostRun: fence.Run,
		Checked: len(rec.Spec.AllChecks()) > 0, Files: len(rec.Spec.Files) > 0, JoinToken: token, CA: s.CA,
	}
}

// Agent is where machines fetch the agent: from the replicas that serve the same programs as the
// preferred one does, or if it serves none, as the first that does. Of two releases side by side
// one is chosen, because a machine takes only the program whose hash its document has.
func (s *Shard) Agent(preferred string) provider.AgentSource {
	source := provider.AgentSource{Host: identity.Host(s.ID, identity.Coordinator)}
	ids := slices.Sorted(maps.Keys(s.Replicas))
	for _, id := range append([]string{preferred}, ids...) {
		if r := s.Replicas[id]; source.SHA256 == nil && r.Downloads != "" && len(r.Agents) > 0 {
			source.SHA256 = r.Agents
		}
	}
	if source.SHA256 == nil {
		return provider.AgentSource{}
	}
	for _, id := range ids {
		if r := s.Replicas[id]; r.Downloads != "" && maps.Equal(r.Agents, source.SHA256) {
			source.Addresses = append(source.Addresses, r.Downloads)
		}
	}
	return source
}
