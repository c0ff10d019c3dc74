package cli

import (
	"context"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// GroupRetry is the command group retry (FLAP-3).
type GroupRetry struct {
	Group string `arg:"" help:"Name of the group."`
}

// Run orders a fresh start of slots that are flapping or were given up, of a roll and of an upgrade
// of agents that stopped.
func (c *GroupRetry) Run(ctx context.Context, inv *Invocation) error {
	g, err := inv.group(ctx, c.Group)
	if err != nil {
		return err
	}
	st := g.Status.Record
	upgrade := st.Agents != nil && st.Agents.Stopped != ""
	if st.Flapping == 0 && st.Errored == 0 && !upgrade && !story.Of(st).Roll.Halted() {
		inv.warn("nothing of %s is backing off, given up or stopped, as last reported by its leader: there may be nothing "+
			"to retry", c.Group)
	}
	what := "slots that are backing off or were given up are retried at once, and their failures are forgotten"
	if upgrade {
		what = "the upgrade of agents begins again with one agent; " + what
	}
	return inv.orderGroup(ctx, g, store.RequestRetry, what)
}

// GroupOverrideStorm is the command group override-storm (SAFE-2).
type GroupOverrideStorm struct {
	Group string `arg:"" help:"Name of the group."`
}

// Run orders the end of the storm. Without a storm it writes no order, because an order must not
// override a later storm.
func (c *GroupOverrideStorm) Run(ctx context.Context, inv *Invocation) error {
	g, err := inv.group(ctx, c.Group)
	if err != nil {
		return err
	}
	if story.Of(g.Status.Record).Storm == nil {
		what := "there is no storm in group %s"
		if g.Status.Record.Storm != nil {
			what = "the storm in group %s is already over"
		}
		return failureRun(Failed, "leasehold group show "+c.Group, what+": nothing to override, and no order was given",
			c.Group)
	}
	return inv.orderGroup(ctx, g, store.RequestOverrideStorm, "lost instances are replaced again, spread over time")
}

// GroupPromote is the command group promote (ROLL-5).
type GroupPromote struct {
	Group string `arg:"" help:"Name of the group."`
}

// Run orders that the roll goes on. Without canaries that wait it writes no order, because an order
// must not promote the canaries of a later roll.
func (c *GroupPromote) Run(ctx context.Context, inv *Invocation) error {
	g, err := inv.group(ctx, c.Group)
	if err != nil {
		return err
	}
	if r := g.Status.Record.Rollout; r == nil || r.Canary == 0 || r.Promoted != "" {
		return failureRun(Failed, "leasehold group show "+c.Group,
			"group %s has no roll with canaries that are not promoted yet: no order was given", c.Group)
	}
	return inv.orderGroup(ctx, g, store.RequestPromote, "the roll goes on to the other instances, under the budgets")
}
