package store

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Validate checks every field. The error joins a *FieldError for each that is wrong.
func (g Group) Validate() error {
	errs := g.fieldErrors()
	wrong := map[string]bool{}
	for _, err := range errs {
		var field *FieldError
		if errors.As(err, &field) {
			wrong[field.Path] = true
		}
	}
	for _, err := range append(g.placeholderErrors(), g.fileErrors()...) {
		if !wrong[err.Path] { // one reason is enough
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// fieldErrors checks each field by itself and beside others, placeholders excepted.
func (g Group) fieldErrors() []error {
	var errs []error
	for _, f := range Fields {
		if f.wrong != nil {
			for _, e := range f.wrong(&g) {
				errs = append(errs, &e)
			}
			continue
		}
		if !f.ok(&g) {
			errs = append(errs, &FieldError{Path: f.Path, Value: show(f.value(&g)), Allowed: f.Allowed, Rule: f.Rule})
		}
	}
	return errs
}

// Warnings are the questionable, though allowed, choices in a spec.
func (g Group) Warnings() []string {
	var w []string
	if g.MaxExpansionFor(g.Budget.Heal) == 0 && g.MaxUnavailableFor(g.Budget.Heal, false) == 0 {
		w = append(w, "budget: max_expansion and max_unavailable are both 0 for healing: only dead instances heal (HEAL-3)")
	} else if g.MaxExpansionFor(g.Budget.Roll) == 0 && g.MaxUnavailableFor(g.Budget.Roll, false) == 0 {
		w = append(w, "budget.roll: max_expansion and max_unavailable are both 0: no roll replaces an instance (ROLL-1)")
	}
	if g.MaxExpansionFor(g.Budget.Expiry) == 0 && (g.Spot.Enabled || g.Capacity.Spot > 0 || aged(g.Expiry.EligibleAge) ||
		aged(g.Expiry.ForcedAge)) {
		w = append(w, "budget: max_expansion is 0: no instance expires, since its replacement is made first (EXP-2)")
	}
	if l := g.Report.OnLeaseLost; l.Fences() {
		w = append(w,
			"report.on_lease_lost: machines stop when coordinators or etcd are out of reach for a lease, "+
				"and when their record is lost: SAFE-5 and SAFE-14 are given up (SAFE-9)")
		if third := g.Report.LeaseTTL / 3; l.Do != LeaseLostRun && g.StopTimeout > third {
			w = append(w,
				fmt.Sprintf("stop_timeout: %s is more than a third of report.lease_ttl: without its lease a workload is killed "+
					"after %s at most (SAFE-9)", g.StopTimeout, Duration(third.D().Truncate(100*time.Millisecond))))
		}
	}
	if never := g.neverAllowed(); len(never) > 0 {
		w = append(
			w,
			"windows: no window allows "+strings.Join(
				never,
				", ",
			)+": it never begins, but for what waits for no window (ROLL-6)",
		)
	}
	if len(g.Secrets) > 0 && len(g.Workload.Run) == 0 {
		w = append(w, "secrets: there is no workload.run that gets them (SEC-6)")
	}
	if g.Capacity.Spot > 0 && g.MaxExpansion() == 0 {
		w = append(w, "budget: max_expansion is 0: nothing returns to spot, since its replacement is made first (SPOT-4)")
	}
	if g.Capacity.Spot == 0 && g.Capacity != (CapacitySpec{}) {
		w = append(w, "capacity: capacity.spot is 0: the group has no spot machines, and nothing else "+
			"of capacity has an effect (SPOT-4)")
	}
	if g.Scale != nil && g.Scale.growsOnly() {
		w = append(w, "scale: memory makes the group grow only, and no other target lets it shrink (AUTO-1)")
	}
	if (g.Spot.Enabled || g.Capacity.Spot > 0) && !g.Spot.Watched() {
		w = append(w, "spot: no source is named: agents do not look for interruption notices (SPOT-1)")
	}
	return w
}

var (
	nameForm  = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$`)
	labelForm = regexp.MustCompile(`^[A-Za-z0-9_./-]{1,63}$`)
	tagForm   = regexp.MustCompile(`^[A-Za-z0-9_.:/=+@-]{1,100}$`)
	varForm   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

	endpointForm = regexp.MustCompile(`^https?://[^\s/?#]+(/[^\s?#]*)?$`)
)

// Fields is the table of all fields of a group's spec that an operator may write in a group file. A
// path with [] is of a field that each item of a list has.
var Fields = slices.Concat(fieldsBefore, checkFields(), fileFields(), balancerFields, windowFields,
	busyFields, fieldsAfter, scaleFields, agentFields)

// maxSettings is how large the settings of a template may be, in JSON.
const maxSettings = 64 << 10

// fieldsBefore are those that stand before the checks.
var fieldsBefore = []Field{
	{
		Path: "name", Type: "string", Rule: "", Doc: "The group's name. Instances are named after it.",
		Allowed: "1 to 40 of a-z, 0-9 and -, beginning with a letter and not ending in -",
		value:   func(g *Group) any { return g.Name },
		ok:      func(g *Group) bool { return nameForm.MatchString(g.Name) },
	},
	intField("size", "0", "", "How many instances are wanted.", 0, MaxSize, func(g *Group) int { return g.Size }),
	{
		Path: "lifecycle", Type: "string", Default: LifecycleService, Allowed: `"service" or "task"`, Rule: "REC-12",
		Doc: "service: an instance that ends is replaced. task: one whose workload ends with exit " +
			"code 0 is finished and not replaced.",
		value: func(g *Group) any { return g.Lifecycle },
		ok:    func(g *Group) bool { return g.Lifecycle == LifecycleService || g.Lifecycle == LifecycleTask },
	},
	mapField("labels", "REC-10", "Labels of the group, for summing up health.",
		"at most 100 labels of 1 to 63 letters, digits and _./-", labelForm,
		func(g *Group) map[string]string { return g.Labels }),
	{
		Path: "provider", Type: "string",
		Allowed: "the name of a provider, for example process; none needs size 0",
		Doc:     "What makes the machines. none: people do, one by one; see leasehold instance bootstrap.",
		value:   func(g *Group) any { return g.Provider },
		ok: func(g *Group) bool {
			return nameForm.MatchString(g.Provider) && (g.Provider != ProviderNone || g.Size == 0)
		},
	},
	{
		Path: "template.instance_type", Type: "string", Default: "none", Allowed: "at most 100 characters",
		Doc:   "The kind of machine, in the provider's words.",
		value: func(g *Group) any { return g.Template.InstanceType },
		ok:    func(g *Group) bool { return len(g.Template.InstanceType) <= 100 },
	},
	{
		Path: "template.instance_types", Type: "list of strings", Default: "none", Rule: "PROV-5",
		Allowed: "at most 10 different names, and none beside template.instance_type",
		Doc:     "Kinds of machine in order of preference: the next is tried where the provider has no room for one.",
		value:   func(g *Group) any { return g.Template.InstanceTypes },
		ok: func(g *Group) bool {
			return distinct(g.Template.InstanceTypes, 10) &&
				(g.Template.InstanceType == "" || len(g.Template.InstanceTypes) == 0)
		},
	},
	{
		Path: "template.zones", Type: "list of strings", Default: "the provider's",
		Allowed: "at most 50 different names", Rule: "REC-3", Doc: "Zones over which the instances are spread evenly.",
		value: func(g *Group) any { return g.Template.Zones },
		ok:    func(g *Group) bool { return distinct(g.Template.Zones, 50) },
	},
	{
		Path: "template.tags", Type: "map of strings", Default: "none", Rule: "PROV-8",
		Allowed: "at most 30 tags; letters, digits and _.:/=+@- in a name of at most 100 characters that does " +
			"not begin with leasehold; at most 255 characters in a value",
		Doc:   "Tags for the machine, beside Leasehold's own.",
		value: func(g *Group) any { return g.Template.Tags },
		ok: func(g *Group) bool {
			for name, value := range g.Template.Tags {
				if !tagForm.MatchString(name) || strings.HasPrefix(strings.ToLower(name), "leasehold") ||
					utf8.RuneCountInString(value) > 255 || strings.ContainsFunc(value, unicode.IsControl) {
					return false
				}
			}
			return len(g.Template.Tags) <= 30
		},
	},
	{
		Path: "template.settings", Type: "nested values", Default: "none", Rule: "PROV-3",
		Allowed: "as the provider's schema says, at most 64 KiB",
		Doc:     "What else the provider wants to know of a machine: `leasehold provider show NAME` prints its schema.",
		value: func(g *Group) any {
			if n := len(Encode(g.Template.Settings)); n > maxSettings {
				return fmt.Sprintf("%d bytes", n)
			}
			return g.Template.Settings
		},
		ok: func(g *Group) bool { return len(Encode(g.Template.Settings)) <= maxSettings },
	},
	{
		Path: "workload.run", Type: "list of strings", Default: "none",
		Allowed: "a program and its arguments, at most 256 of at most 4096 bytes",
		Doc:     "What the agent runs; ${name} stands for a variable or a fact of the machine, such as ${port}.",
		value:   func(g *Group) any { return g.Workload.Run },
		ok:      func(g *Group) bool { return runOK(g.Workload.Run) },
	},
	mapField("vars", "ROLL-2", "Variables for the workload.",
		"at most 100 variables named like C identifiers, of at most 4096 bytes", varForm,
		func(g *Group) map[string]string { return g.Vars }),
	secretsField,
	durationField("report.interval", "5s", "DET-1", "How often an agent reports.", time.Second, 5*time.Minute,
		func(g *Group) Duration { return g.Report.Interval }),
	{
		Path: "report.lease_ttl", Type: "duration", Default: "3 × interval + 2s", Rule: "DET-2",
		Doc:     "Silence for so long is loss.",
		Allowed: "whole seconds, at least 3 × report.interval, at most 1h",
		value:   func(g *Group) any { return g.Report.LeaseTTL },
		ok: func(g *Group) bool {
			ttl := g.Report.LeaseTTL.D()
			return ttl%time.Second == 0 && ttl >= 3*g.Report.Interval.D() && ttl <= time.Hour && ttl >= 2*time.Second
		},
	},
	{
		Path: "report.on_lease_lost", Type: "word or command", Default: "none",
		Allowed: `"none", "stop", "poweroff" or {run: [a program, its arguments]}`, Rule: "SAFE-9",
		Doc: "What an agent does that could not renew its lease, before that can have ended. stop: " +
			"the workload is stopped until the agent is accepted again. poweroff: then the machine is powered off. run: " +
			"a command, which has a third of the lease. Anything but none stops machines where coordinators or etcd are away.",
		value: func(g *Group) any { return g.Report.OnLeaseLost },
		ok:    func(g *Group) bool { return g.Report.OnLeaseLost.ok() },
	},
}

// fieldsAfter are those that stand after the checks.
var fieldsAfter = []Field{
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
	amountField("budget.heal.max_expansion", ofTheGroup, "REC-18",
		"Healing makes no replacement first while more than this is in use of budget.max_expansion, whatever uses it.",
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
			"template, workload, vars, secrets, files and checks as they were when the whole group was last healthy, as " +
			"leasehold group rollback does. Not for a group from a shard's file.",
		value: func(g *Group) any { return g.Rollout.AutoRollback },
		ok:    func(*Group) bool { return true },
	},
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
	atMost(ageField("expiry.eligible_age", "EXP-1",
		"Older instances are replaced one at a time, while the whole group is healthy; 0: off.",
		func(g *Group) *Duration { return g.Expiry.EligibleAge }),
		"expiry.forced_age", func(g *Group) (eligible, forced Duration, both bool) {
			if !aged(g.Expiry.EligibleAge) || !aged(g.Expiry.ForcedAge) { // one of them is off, or the shard's
				return 0, 0, false
			}
			return *g.Expiry.EligibleAge, *g.Expiry.ForcedAge, true
		}),
	ageField("expiry.forced_age", "EXP-1", "Older instances are replaced whatever the health of the group; 0: off.",
		func(g *Group) *Duration { return g.Expiry.ForcedAge }),
	durationField("drain.timeout", "5m", "DRAIN-1", "How long the connections through load balancers and the drain hook "+
		"may take; 0: they are not waited for.", 0,
		24*time.Hour,
		func(g *Group) Duration { return g.Drain.Timeout }),
	{
		Path: "drain.hook", Type: "list of strings", Default: "none",
		Allowed: "a program and its arguments, at most 256 of at most 4096 bytes", Rule: "DRAIN-1",
		Doc:   "What the agent runs before its machine is removed; its end is waited for.",
		value: func(g *Group) any { return g.Drain.Hook },
		ok:    func(g *Group) bool { return runOK(g.Drain.Hook) },
	},
	{
		Path: "spot.enabled", Type: "boolean", Default: "false", Allowed: "true or false", Rule: "SPOT-3",
		Doc:   "The provider may take the machines away: none gets older than spot.max_lifetime.",
		value: func(g *Group) any { return g.Spot.Enabled },
		ok:    func(*Group) bool { return true },
	},
	durationField("spot.max_lifetime", "24h", "SPOT-3",
		"Machines of a spot group are replaced at a random age, at most this old and at least 11/12 of it.",
		time.Minute, 365*24*time.Hour,
		func(g *Group) Duration { return g.Spot.MaxLifetime }),
	{
		Path: "spot.source", Type: "string", Default: NoticeNone, Allowed: `"none", "aws", "gcp", "azure" or "file"`,
		Rule: "SPOT-1",
		Doc: "Where the agent looks for the word that its machine will be taken away: the cloud's metadata service, " +
			"or a file that another program writes. It looks whether spot.enabled is set or not.",
		value: func(g *Group) any { return g.Spot.Source },
		ok: func(g *Group) bool {
			return oneOf(g.Spot.Source, NoticeNone, NoticeAWS, NoticeGCP, NoticeAzure, NoticeFile)
		},
	},
	{
		Path: "spot.file", Type: "string", Default: "none",
		Allowed: "an absolute path with source file, and nothing with any other", Rule: "SPOT-1",
		Doc: "A file on the machine: once it is there the machine is given up, also if it goes again. " +
			"All machines of the process provider see the same file. It may say kind, why, " +
			"and in (2m) or at (a time), as JSON or line by line.",
		value: func(g *Group) any { return g.Spot.File },
		ok: func(g *Group) bool {
			n := g.Spot.NoticeSpec
			return n.Source == NoticeFile && path.IsAbs(n.File) && len(n.File) <= 4096 || n.Source != NoticeFile &&
				n.File == ""
		},
	},
	{
		Path: "spot.endpoint", Type: "string", Default: "the cloud's own",
		Allowed: "a URL like http://127.0.0.1:8080, with source aws, gcp or azure", Rule: "SPOT-1",
		Doc:   "Where the metadata service is, if not where the cloud has it.",
		value: func(g *Group) any { return g.Spot.Endpoint },
		ok: func(g *Group) bool {
			n := g.Spot.NoticeSpec
			return n.Endpoint == "" || oneOf(n.Source, NoticeAWS, NoticeGCP, NoticeAzure) &&
				endpointForm.MatchString(n.Endpoint) && len(n.Endpoint) <= 500
		},
	},
	{
		Path: "slots.name", Type: "string", Default: "the instance's ID",
		Allowed: "a host name of at most 63 lower-case letters, digits and hyphens, with ${slot} unless " +
			"size is 1; ${group} and the variables of vars are filled in too",
		Rule: "SLOT-1",
		Doc: "The name of the machine in a slot, which its replacement gets as well: the fact ${name}, " +
			"LEASEHOLD_NAME for the workload, and the host's name where cloud-init sets that.",
		value: func(g *Group) any { return g.Slots.Name },
		ok:    func(g *Group) bool { return g.slotNameOK() },
	},
	{
		Path: "capacity.on_demand_base", Type: "integer", Default: "0", Allowed: "0 to size", Rule: "SPOT-4",
		Doc:   "So many instances are always on demand; capacity.spot is a share of the others.",
		value: func(g *Group) any { return g.Capacity.OnDemandBase },
		ok:    func(g *Group) bool { n := g.Capacity.OnDemandBase; return n == 0 || n > 0 && n <= g.Size },
	},
	{
		Path: "capacity.spot", Type: "integer", Default: "0", Allowed: "0 to 100, and 0 with spot.enabled", Rule: "SPOT-4",
		Doc: "The percentage of spot machines, which the provider may take away, among the instances beyond " +
			"capacity.on_demand_base. Unlike spot.enabled, it can fall back to machines on demand.",
		value: func(g *Group) any { return g.Capacity.Spot },
		ok: func(g *Group) bool {
			n := g.Capacity.Spot
			return n >= 0 && n <= 100 && (n == 0 || !g.Spot.Enabled)
		},
	},
	{
		Path: "capacity.fallback", Type: "string", Default: FallbackOnDemand, Allowed: `"on_demand" or "wait"`,
		Rule: "SPOT-4",
		Doc: "What becomes of an instance for which there is no spot capacity: on_demand makes it on demand after " +
			"capacity.fallback_after, wait keeps trying.",
		value: func(g *Group) any { return cmp.Or(g.Capacity.Fallback, FallbackOnDemand) },
		ok:    func(g *Group) bool { return oneOf(g.Capacity.Fallback, "", FallbackOnDemand, FallbackWait) },
	},
	durationField("capacity.fallback_after", "2m", "SPOT-4",
		"How long spot capacity is asked for, in every zone, before an instance is made on demand instead.", 0, time.Hour,
		func(g *Group) Duration { return Duration(g.Capacity.Patience()) }),
	{
		Path: "capacity.return_after", Type: "duration", Default: "30m", Allowed: "0s, or 5m0s to 24h0m0s", Rule: "SPOT-4",
		Doc: "How long after a fallback one instance tries to return to spot; each failure doubles it, up to 24h. " +
			"Until then no spot machine is asked for. 0: nothing returns.",
		value: func(g *Group) any { return Duration(g.Capacity.Return()) },
		ok: func(g *Group) bool {
			d := g.Capacity.Return()
			return d == 0 || d >= 5*time.Minute && d <= MostReturnAfter
		},
	},
	durationField("on_demand_age", "0s", "REC-2", "On-demand instances older than this are removed; 0: never.", 0,
		365*24*time.Hour,
		func(g *Group) Duration { return g.OnDemandAge }),
	durationField("stop_timeout", "30s", "HEAL-14",
		"How long a machine may take to stop before it is removed all the same.", 0, 10*time.Minute,
		func(g *Group) Duration { return g.StopTimeout }),
}

// Planned are fields that rules.md promises and this version does not act on. Writing one is an
// error that says so, rather than a setting that does nothing.
var Planned = []string{
	"template.subnet_pool",
}
