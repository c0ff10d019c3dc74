package store

import (
	"errors"
	"fmt"
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

// Warnings returns the questionable, though allowed, choices in a spec.
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
var Fields = slices.Concat(baseFields, checkFields(), fileFields(), balancerFields, windowFields, busyFields,
	healFields, rolloutFields, analysisFields, stormFields, leavingFields, machineFields, scaleFields, scheduleFields,
	agentFields, drillFields)

// maxSettings is how large the settings of a template may be, in JSON.
const maxSettings = 64 << 10

// baseFields say what is made and run, and how it reports.
var baseFields = []Field{
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

// Planned are fields that rules.md promises and this version does not act on. Writing one is an
// error that says so, rather than a setting that does nothing.
var Planned = []string{
	"template.subnet_pool",
}
