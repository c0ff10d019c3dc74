package store

import (
	"cmp"
	"time"
)

// rolloutFields say how a change is brought to the instances.
var rolloutFields = []Field{
	{
		Path: "rollout.strategy", Type: "string", Default: StrategyProactive, Allowed: `"proactive" or "opportunistic"`,
		Rule: "ROLL-1",
		Doc: "proactive: a change of the template is brought to all instances, under the budgets. opportunistic: " +
			"only to those that are replaced for another reason.",
		value: func(g *Group) any { return g.Rollout.Strategy },
		ok:    func(g *Group) bool { return oneOf(g.Rollout.Strategy, StrategyProactive, StrategyOpportunistic) },
	},
	{
		Path: "rollout.minimal_action", Type: "string", Default: ActionLiveUpdate,
		Allowed: `"live_update", "restart" or "recreate"`, Rule: "ROLL-2",
		Doc:   "The least that is done to bring a change to an instance; more is done where the change needs it.",
		value: func(g *Group) any { return g.Rollout.MinimalAction },
		ok: func(g *Group) bool {
			return oneOf(g.Rollout.MinimalAction, ActionLiveUpdate, ActionRestart, ActionRecreate)
		},
	},
	durationField("rollout.startup_duration", "0s", "ROLL-3",
		"An instance must have been healthy for so long before it counts.", 0, time.Hour,
		func(g *Group) Duration { return g.Rollout.StartupDuration }),
	durationField("rollout.progress_deadline", "10m", "ROLL-4",
		"A roll without progress for so long is stalled, and says so.", 10*time.Second, 24*time.Hour,
		func(g *Group) Duration { return g.Rollout.ProgressDeadline }),
	amountField("rollout.canary", "0", "ROLL-5",
		"So many instances get a new template first, one in each zone before two in one, and always fewer than size. The "+
			"others follow when these have been healthy for rollout.canary_duration, or by leasehold group promote. A "+
			"percentage is rounded up; 0: no canary.",
		func(g *Group) *Amount { return &g.Rollout.Canary }),
	{
		Path: "rollout.canary_duration", Type: "duration", Default: "10m", Allowed: "0s to 168h0m0s", Rule: "ROLL-5",
		Doc: "How long the canaries have to be healthy, all at once, before the roll goes on; 0: it waits for leasehold " +
			"group promote.",
		value: func(g *Group) any {
			if d := g.Rollout.CanaryDuration; d != nil {
				return *d
			}
			return DefaultCanaryDuration
		},
		ok: func(g *Group) bool {
			d := g.Rollout.CanaryDuration
			return d == nil || *d >= 0 && d.D() <= 7*24*time.Hour
		},
	},
	durationField("rollout.bake", "0s", "ROLL-8",
		"How long the roll waits after its canaries and, with rollout.order zone, after each zone, while these are healthy.",
		0, 7*24*time.Hour,
		func(g *Group) Duration { return g.Rollout.Bake }),
	{
		Path: "rollout.order", Type: "string", Default: OrderAny, Allowed: `"any" or "zone"`, Rule: "ROLL-8",
		Doc:   "zone: a roll goes through one zone after the other, in order of name.",
		value: func(g *Group) any { return cmp.Or(g.Rollout.Order, OrderAny) },
		ok:    func(g *Group) bool { return oneOf(g.Rollout.Order, "", OrderAny, OrderZone) },
	},
	{
		Path: "rollout.auto_rollback", Type: "boolean", Default: "false", Allowed: "true or false", Rule: "ROLL-5",
		Doc: "When a roll is stopped because its template is blamed, or is stalled, the coordinator restores provider, " +
			"template, workload, vars, secrets, checks, files, slots and the probe of busy as they were when the whole group " +
			"was last healthy, as leasehold group rollback does. Not for a group from a shard's file.",
		value: func(g *Group) any { return g.Rollout.AutoRollback },
		ok:    func(*Group) bool { return true },
	},
}
