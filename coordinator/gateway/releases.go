package gateway

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// releases are the signed agents that replicas serve, by version. They are never modified.
type releases map[string]*served

// served is a version of the agent, and where to download it.
type served struct {
	programs  []*protocol.AgentProgram // one for each platform
	addresses []string
}

// releasesOf collects what the replicas serve.
func releasesOf(c *cache.Content) *releases {
	all := releases{}
	for _, id := range slices.Sorted(maps.Keys(c.Replicas)) {
		r := c.Replicas[id].Record
		for _, a := range r.AgentReleases {
			if r.Downloads == "" {
				break
			}
			v := all[a.Version]
			if v == nil {
				v = &served{}
				all[a.Version] = v
			}
			if !slices.Contains(v.addresses, r.Downloads) {
				v.addresses = append(v.addresses, r.Downloads)
			}
			same := func(p *protocol.AgentProgram) bool { return p.GetStatement() == a.Statement }
			if !slices.ContainsFunc(v.programs, same) {
				v.programs = append(v.programs, &protocol.AgentProgram{Statement: a.Statement, Path: a.Path})
			}
		}
	}
	return &all
}

// upgradeFor returns the message about an offer; nil while no replica serves it.
func (g *Gateway) upgradeFor(u *store.AgentUpgrade) *protocol.AgentUpgrade {
	all := g.releases.Load()
	if u == nil || u.Withdrawn || all == nil || (*all)[u.Version] == nil {
		return nil
	}
	v := (*all)[u.Version]
	return &protocol.AgentUpgrade{
		Token: u.Token, Programs: v.programs, Addresses: v.addresses, Downgrade: u.Downgrade,
		Within: durationpb.New(u.Within.D()),
	}
}

// withTimeLeft adds to a message how long its offer is still valid. That always differs, so it does
// not count as a change.
func withTimeLeft(full *protocol.Wanted, offer *store.AgentUpgrade, now time.Time) *protocol.Wanted {
	if full.GetUpgrade() == nil || offer == nil {
		return full
	}
	left := offer.Timer.Start.Add(offer.Timer.For.D()).Sub(now)
	full = proto.CloneOf(full)
	full.Upgrade.Left = durationpb.New(max(0, min(left, offer.Timer.For.D()))) // clocks differ
	return full
}
