package store

import (
	"cmp"
	"time"
)

// healFields say when an instance has failed, how it is replaced, within which budgets, and how
// slots that keep failing wait.
var healFields = []Field{
	durationField("registration_timeout", "5m", "DET-11",
		"An instance whose agent does not register within it has failed.", 10*time.Second, 24*time.Hour,
		func(g *Group) Duration { return g.RegistrationTimeout }),
	durationField("max_checking_health_duration", "10m", "DET-10",
		"An instance that is not healthy so long after it registered has failed; 0: no limit.", 0, 24*time.Hour,
		func(g *Group) Duration { return g.MaxChecking }),
	{
		Path: "heal.policy", Type: "string", Default: HealRecreate, Allowed: `"recreate", "restart" or "none"`,
		Rule: "HEAL-1",
		Doc: "recreate: a failed instance is replaced by a new one. restart: its workload is restarted, then its machine, " +
			"before it is replaced. none: it is left alone.",
		value: func(g *Group) any { return g.Heal.Policy },
		ok:    func(g *Group) bool { return oneOf(g.Heal.Policy, HealRecreate, HealRestart, HealNone) },
	},
	{
		Path: "heal.on_load_balancer", Type: "boolean", Default: "false", Allowed: "true or false", Rule: "LB-2",
		Doc: "An instance that a load balancer has confirmed and later calls down has failed, " +
			"unless it calls most of its members down: then the balancer has.",
		value: func(g *Group) any { return g.Heal.OnLoadBalancer },
		ok:    func(*Group) bool { return true },
	},
	amountField("heal.max_unhealthy", "none: however many fail", "ROLL-7",
		"The breaker: while more instances than this fail their checks, and at least three, none is healed for failing "+
			"checks: what they depend on is broken, and new machines would not mend it. The dead and the lost still are. "+
			"After each storm.probe_after one of them is healed, to see whether that helps.",
		func(g *Group) *Amount { return g.Heal.MaxUnhealthy }),
	amountField("budget.max_expansion", "1", "HEAL-2",
		"How many machines above size may exist at once, those that are being deleted included; the dead do not count. "+
			"A percentage is rounded up.",
		func(g *Group) *Amount { return &g.Budget.MaxExpansion }),
	amountField("budget.max_unavailable", "0; 1 where instances are restarted in their place", "HEAL-3",
		"How many instances may be taken down at once: restarted, or removed before their replacement is healthy. "+
			"Those that are down already count. A percentage is rounded down, though to 1 where budget.max_expansion is 0.",
		func(g *Group) *Amount { return g.Budget.MaxUnavailable }),
	intField("budget.max_creating", "0", "HEAL-7",
		"How many instances may be coming up at once; 0: no limit of its own.", 0, 100,
		func(g *Group) int { return g.Budget.MaxCreating }),
	intField("budget.max_deleting", "0", "HEAL-7",
		"How many instances may be going down at once; 0: no limit of its own.", 0, 100,
		func(g *Group) int { return g.Budget.MaxDeleting }),
	{
		Path: "budget_group", Type: "string", Default: "none", Rule: "REC-18",
		Allowed: "1 to 40 of a-z, 0-9 and -, beginning with a letter and not ending in -",
		Doc: "Groups that name the same budget_group are not taken down together: nothing takes an instance down while as " +
			"many are down in all of them as the shard's setting budget_groups allows, 1 unless it says otherwise.",
		value: func(g *Group) any { return g.BudgetGroup },
		ok:    func(g *Group) bool { return g.BudgetGroup == "" || nameForm.MatchString(g.BudgetGroup) },
	},
	amountField("budget.heal.max_expansion", ofTheGroup, "REC-18",
		"Healing makes no replacement first while so much is in use of budget.max_expansion, whatever uses it.",
		func(g *Group) *Amount { return g.Budget.Heal.MaxExpansion }),
	amountField("budget.heal.max_unavailable", ofTheGroup, "REC-18",
		"Healing takes no instance down while so many are down, whatever the reason.",
		func(g *Group) *Amount { return g.Budget.Heal.MaxUnavailable }),
	amountField("budget.roll.max_expansion", ofTheGroup, "REC-18",
		"A roll makes no replacement first while so much is in use of budget.max_expansion, whatever uses it.",
		func(g *Group) *Amount { return g.Budget.Roll.MaxExpansion }),
	amountField("budget.roll.max_unavailable", ofTheGroup, "REC-18",
		"A roll takes no instance down while so many are down, whatever the reason.",
		func(g *Group) *Amount { return g.Budget.Roll.MaxUnavailable }),
	amountField("budget.expiry.max_expansion", ofTheGroup, "REC-18",
		"No instance that has grown too old is replaced while so much is in use of budget.max_expansion, whatever uses it.",
		func(g *Group) *Amount { return g.Budget.Expiry.MaxExpansion }),
	amountField("budget.expiry.max_unavailable", ofTheGroup, "REC-18",
		"No instance past expiry.forced_age is taken down, because no replacement can be had, while so many are down.",
		func(g *Group) *Amount { return g.Budget.Expiry.MaxUnavailable }),
	{
		Path: "spread", Type: "string", Default: string(SpreadAtCreation), Allowed: `"at_creation" or "even"`,
		Rule: "REC-17",
		Doc: "at_creation: new instances keep the zones even, and nothing that runs is moved. even: " +
			"instances are also replaced one at a time, when nothing else is to be done, while zones differ by two or more.",
		value: func(g *Group) any { return string(cmp.Or(g.Spread, SpreadAtCreation)) },
		ok:    func(g *Group) bool { return g.Spread.IsZero() || g.Spread == SpreadEven },
	},
	intField("flap.failures", "3", "FLAP-1", "So many failures of a slot within flap.window make it flap.", 1, 100,
		func(g *Group) int { return g.Flap.Failures }),
	durationField("flap.window", "5m", "FLAP-1", "The time in which failures of a slot are counted.", time.Second,
		24*time.Hour,
		func(g *Group) Duration { return g.Flap.Window }),
	atMost(durationField("flap.min_delay", "30s", "FLAP-2",
		"The first wait of a flapping slot; it doubles with each further failure.", time.Second, time.Hour,
		func(g *Group) Duration { return g.Flap.MinDelay }),
		"flap.max_delay", func(g *Group) (least, most Duration, both bool) {
			return g.Flap.MinDelay, g.Flap.MaxDelay, g.Flap.MaxDelay.D() >= time.Second
		}),
	durationField("flap.max_delay", "16m", "FLAP-2", "The longest wait of a flapping slot.", time.Second, 24*time.Hour,
		func(g *Group) Duration { return g.Flap.MaxDelay }),
	durationField("flap.reset", "5m", "FLAP-4", "Healthy for so long, and the slot's failures are forgotten.",
		time.Second, 24*time.Hour,
		func(g *Group) Duration { return g.Flap.Reset }),
	durationField("flap.noise", "5s", "FLAP-2",
		"At most so much is added to a wait, or taken from it, so that slots do not try in step.", 0, time.Minute,
		func(g *Group) Duration { return g.Flap.Noise }),
	intField("flap.give_up_after", "0", "FLAP-3", "A flapping slot with more failures than this is given up; 0: never.",
		0, 1_000_000,
		func(g *Group) int { return g.Flap.GiveUpAfter }),
	durationField("flap.give_up_time", "72h", "FLAP-3", "A slot that flaps for longer is given up; 0: never.", 0,
		365*24*time.Hour,
		func(g *Group) Duration { return g.Flap.GiveUpTime }),
}

// stormFields say which losses are a storm.
var stormFields = []Field{
	intField("storm.min", "3", "SAFE-2", "Fewer losses than this are no storm.", 2, MaxSize,
		func(g *Group) int { return g.Storm.Min }),
	intField("storm.percent", "50", "SAFE-2", "A smaller share of the group than this is no storm.", 1, 100,
		func(g *Group) int { return g.Storm.Percent }),
	durationField("storm.window", "1m", "SAFE-2", "Suspicions count that began within this time.", time.Second,
		time.Hour,
		func(g *Group) Duration { return g.Storm.Window }),
	durationField("storm.cooldown", "1m", "SAFE-2", "A storm ends when losses have been few for so long.", time.Second,
		time.Hour,
		func(g *Group) Duration { return g.Storm.Cooldown }),
	durationField("storm.probe_after", "5m", "SAFE-2",
		"After so long in a storm one lost instance at a time is replaced, to see whether that helps; 0: never.", 0,
		24*time.Hour,
		func(g *Group) Duration { return g.Storm.ProbeAfter }),
}
