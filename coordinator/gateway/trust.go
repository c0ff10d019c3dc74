package gateway

import (
	"slices"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/coordinator/cache"
)

// Replicas may have different files: one replica's were not rotated yet, or were restored from a
// backup. No replica may remove an authority from an agent that the agent needs to trust other
// replicas. Otherwise its agents could not reach the others, and would switch between trusts.

// leaveTrust reports whether an agent keeps the authorities that it has: another replica trusts
// exactly those, and more than this one. The agent is updated once that replica has our files, or
// is gone.
func (g *Gateway) leaveTrust(ours identity.Trust, has string) bool {
	return slices.ContainsFunc(g.wider(ours), func(theirs []string) bool {
		return has == identity.DigestOf(theirs, "") || // it is new: its machine was sent no issuer
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
