package gateway

import (
	"slices"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/coordinator/cache"
)

// Replicas may have different files: one replica's were not exchanged yet, or it has come back from
// a time before. None must take from an agent what it needs to believe the others, or agents that
// are with it are cut off from all others, and go from one trust to the other and back.

// leaveTrust reports whether an agent keeps the authorities that it has: another replica trusts
// exactly those, and more than this one. The agent is updated once that replica has our files, or
// is gone.
func (g *Gateway) leaveTrust(ours identity.Trust, has string) bool {
	return slices.ContainsFunc(g.wider(ours), func(theirs []string) bool {
		return has == identity.DigestOf(theirs, "") || // it is new: its machine was told no issuer
			slices.ContainsFunc(theirs, func(issuer string) bool { return has == identity.DigestOf(theirs, issuer) })
	})
}

// wider returns the trust sets of other live replicas that contain an authority which ours lacks.
func (g *Gateway) wider(ours identity.Trust) (wider [][]string) {
	g.deps.Cache.View(func(c *cache.Content) {
		for id, r := range c.Replicas {
			if id != g.cfg.Replica && slices.ContainsFunc(r.Record.Believes,
				func(theirs string) bool { return !ours.Believes(theirs) }) {
				wider = append(wider, r.Record.Believes)
			}
		}
	})
	return wider
}
