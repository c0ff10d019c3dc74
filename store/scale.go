package store

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// ScaleSpec sets how a group's size follows its load (AUTO-1 to AUTO-5). What it chooses is in the
// status: see Scale.
type ScaleSpec struct {
	Min       *int          `json:"min,omitempty"` // nil: 1
	Max       int           `json:"max"`
	Targets   []ScaleTarget `json:"targets,omitempty"`
	Schedule  []ScaleChange `json:"schedule,omitempty"`  // AUTO-3
	Warmup    *Duration     `json:"warmup,omitempty"`    // nil: DefaultWarmup
	Tolerance int           `json:"tolerance,omitempty"` // percent; 0: DefaultTolerance
	Up        ScaleUp       `json:"up,omitzero"`
	Down      ScaleDown     `json:"down,omitzero"`
	Mode      string        `json:"mode,omitempty"` // "": ScaleAct
}

// ScaleTarget is what a metric is to be, on average of the instances.
type ScaleTarget struct {
	Metric string  `json:"metric,omitempty"` // that agents report
	From   string  `json:"from,omitempty"`   // or the source of a number from outside, of the replica's (SEC-7)
	Per    string  `json:"per,omitempty"`    // what that number is about; "": PerGroup
	Value  float64 `json:"value"`
}

// What a number from outside is about.
const (
	PerGroup    = "group"    // the instances have it together
	PerInstance = "instance" // it is their average already
)

// ForGroup reports whether the target is a number from outside that needs no instance to be known.
func (t ScaleTarget) ForGroup() bool { return t.From != "" && t.Per != PerInstance }

// Sources are the sources of numbers from outside that the group names, each once.
func (g *Group) Sources() (names []string) {
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if g.Scale != nil {
		for _, t := range g.Scale.Targets {
			add(t.From)
		}
	}
	for i := range g.Rollout.Analysis {
		add(g.Rollout.Analysis[i].From)
	}
	return names
}

// ScaleUp bounds how a group grows.
type ScaleUp struct {
	Window Duration `json:"window,omitempty"` // how long a larger size must be wished for first
	Step   Amount   `json:"step,omitempty"`   // at most so many; 0: DefaultUpStep
	Every  Duration `json:"every,omitempty"`  // in this time; 0: DefaultUpEvery
}

// ScaleDown bounds how a group shrinks.
type ScaleDown struct {
	Window *Duration `json:"window,omitempty"` // the largest wish within it counts; nil: DefaultDownWindow
	Step   Amount    `json:"step,omitempty"`   // at most so many at once; 0: DefaultDownStep
	Every  Duration  `json:"every,omitempty"`  // and as often; 0: DefaultDownEvery
}

// The metrics that agents report, and what a group does with what they ask for.
const (
	MetricCPU     = "cpu"     // percent of all processors
	MetricMemory  = "memory"  // percent
	MetricNetwork = "network" // megabytes a second, sent and received

	ScaleAct    = "act"
	ScaleAdvise = "advise"
)

// The defaults of ScaleSpec.
const (
	DefaultWarmup     = Duration(2 * time.Minute)
	DefaultTolerance  = 10
	DefaultUpStep     = Amount(-100)
	DefaultUpEvery    = Duration(30 * time.Second)
	DefaultDownWindow = Duration(5 * time.Minute)
	DefaultDownStep   = Amount(-25)
	DefaultDownEvery  = Duration(time.Minute)
)

// Complete returns the spec with every default written out.
func (s ScaleSpec) Complete() ScaleSpec {
	least := s.Least()
	s.Min = &least
	s.Tolerance = cmp.Or(s.Tolerance, DefaultTolerance)
	s.Up.Step, s.Up.Every = cmp.Or(s.Up.Step, DefaultUpStep), cmp.Or(s.Up.Every, DefaultUpEvery)
	s.Down.Step, s.Down.Every = cmp.Or(s.Down.Step, DefaultDownStep), cmp.Or(s.Down.Every, DefaultDownEvery)
	if s.Warmup == nil {
		d := DefaultWarmup
		s.Warmup = &d
	}
	if s.Down.Window == nil {
		d := DefaultDownWindow
		s.Down.Window = &d
	}
	s.Mode = cmp.Or(s.Mode, ScaleAct)
	return s
}

// Least is the smallest size that load chooses.
func (s *ScaleSpec) Least() int {
	if s.Min == nil {
		return 1
	}
	return *s.Min
}

// mayBe is the smallest number that scale.min may be: without a number from outside, nothing
// would show that a group without instances needs one.
func (s *ScaleSpec) mayBe() int {
	if slices.ContainsFunc(s.Targets, ScaleTarget.ForGroup) {
		return 0
	}
	return 1
}

// Within is a size, or the bound nearest to it.
func (s *ScaleSpec) Within(size int) int { return max(s.Least(), min(s.Max, size)) }

// Advises reports whether it only says what it would do (AUTO-4).
func (s *ScaleSpec) Advises() bool { return s.Mode == ScaleAdvise }

// ScaleHold is a size that an operator chose over what load chooses (AUTO-3). It holds until Until,
// or until the group or its schedule changes something.
type ScaleHold struct {
	Size  int       `json:"size"`
	By    string    `json:"by"`
	At    time.Time `json:"at"`
	Until time.Time `json:"until,omitzero"` // zero: until the group is changed
}

// HoldsAt reports whether the size is in force.
func (h *ScaleHold) HoldsAt(now time.Time) bool {
	return h != nil && (h.Until.IsZero() || now.Before(h.Until))
}

// HeldAt reports whether a size that an operator chose is in force. Without --until it stays in
// force until the schedule changes something.
func (g *Group) HeldAt(chosen *Scale, now time.Time) bool {
	h := g.ScaleHold
	return h.HoldsAt(now) && (!h.Until.IsZero() || chosen == nil || chosen.Scheduled == nil ||
		g.Scale == nil || len(g.Scale.Schedule) == 0 || !chosen.Scheduled.Since.After(h.At))
}

// SizeAt is the size in force of a group whose status has this part: the operator's, or what load
// chose, or the spec's.
func (g *Group) SizeAt(chosen *Scale, now time.Time) int {
	switch s := g.Scale; {
	case s == nil:
		return g.Size
	case g.HeldAt(chosen, now):
		return g.ScaleHold.Size
	case s.Advises():
		return g.Size
	case chosen == nil:
		return s.Within(g.Size)
	default:
		return s.Under(chosen.Scheduled).Within(chosen.Size)
	}
}

// sourceName is the form of the names in the file of providers.
var sourceName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

// maxTargets bounds the targets of one group.
const maxTargets = 10

// scaleFields are the fields of ScaleSpec.
var scaleFields = []Field{
	scaleField("scale.min", "integer", "1", "AUTO-1", "1 to scale.max, or 0 with a target from outside for the group",
		"The smallest size that load chooses. With 0, numbers from outside for the group alone decide whether there "+
			"is any instance: without one, nothing else could show that one is needed.",
		func(s *ScaleSpec) any { return s.Least() },
		func(s *ScaleSpec) bool {
			return s.Least() >= s.mayBe() && (s.Least() <= s.Max || s.Max < 1)
		}),
	scaleField("scale.max", "integer", "", "AUTO-1", fmt.Sprintf("1 to %d", MaxSize),
		"The largest size that load chooses. With scale, size is only where the group begins: it is 0 (scale.min) or "+
			"within scale.min and scale.max.",
		func(s *ScaleSpec) any { return s.Max }, func(s *ScaleSpec) bool { return s.Max >= 1 && s.Max <= MaxSize }),
	{
		Path: "scale.targets", Type: "list of targets", Default: "none", Rule: "AUTO-1",
		Allowed: fmt.Sprintf("1 to %d with different metrics, or none beside a schedule", maxTargets),
		Doc: "What the load of the instances is to be: of a metric that agents report, or of a number from outside. " +
			"The largest size that one of them asks for wins.",
		wrong: wrongTargets,
	},
	targetField("metric", "string", "", `"cpu", "memory" or "network", or left out with from`,
		"cpu and memory are percentages of a machine, network is megabytes (10^6 bytes) per second that it sends and "+
			"receives, over the last minute. Memory makes the group grow only: it seldom falls with the load.",
		func(t *ScaleTarget) any { return t.Metric },
		func(t *ScaleTarget) bool {
			if t.From != "" {
				return t.Metric == ""
			}
			return oneOf(t.Metric, MetricCPU, MetricMemory, MetricNetwork)
		}),
	targetField("from", "string", "none", "a name of at most 40 of a-z, 0-9 and -, beginning with a letter",
		"The source of a number from outside, instead of metric: one of those that stand under metrics in the file of "+
			"--providers of the coordinators (SEC-7).",
		func(t *ScaleTarget) any { return t.From },
		func(t *ScaleTarget) bool { return t.From == "" || sourceName.MatchString(t.From) }),
	targetField("per", "string", PerGroup, `"group" or "instance", with from alone`,
		"group (the default): the number is what all instances have together, like the length of a queue. instance: it "+
			"is their average already.", func(t *ScaleTarget) any { return t.Per },
		func(t *ScaleTarget) bool { return t.Per == "" || t.From != "" && oneOf(t.Per, PerGroup, PerInstance) }),
	targetField("value", "number", "", "1 to 100 for cpu and memory, 0.001 to 1000000 for network, "+
		"0.000001 to 1e12 from outside",
		"What the metric is to be on average of the instances.", func(t *ScaleTarget) any { return t.Value },
		func(t *ScaleTarget) bool {
			switch {
			case t.From != "":
				return t.Value >= 1e-6 && t.Value <= 1e12
			case t.Metric == MetricNetwork:
				return t.Value >= 0.001 && t.Value <= 1e6
			}
			return t.Value >= 1 && t.Value <= 100
		}),
	scaleDuration("scale.warmup", "2m", "AUTO-1",
		"How long an instance has to be healthy before its load counts. Until then it is capacity on the way.",
		0, time.Hour, func(s *ScaleSpec) Duration { return *s.Complete().Warmup }),
	scaleField("scale.tolerance", "integer", "10", "AUTO-2", "1 to 50",
		"How far load may be from its target before the size changes, in percent; half of it for growth.",
		func(s *ScaleSpec) any { return s.Complete().Tolerance },
		func(s *ScaleSpec) bool { return s.Tolerance >= 0 && s.Tolerance <= 50 }),
	scaleDuration("scale.up.window", "0s", "AUTO-2", "For how long load has to ask for more before the group grows.",
		0, time.Hour, func(s *ScaleSpec) Duration { return s.Up.Window }),
	scaleStep("scale.up.step", "100%",
		"The most instances, or the percentage of the size, that are added within scale.up.every.",
		func(s *ScaleSpec) Amount { return s.Complete().Up.Step }),
	scaleDuration("scale.up.every", "30s", "AUTO-2",
		"Within any span of this length the group grows by no more than scale.up.step, in one change or several.",
		time.Second, time.Hour, func(s *ScaleSpec) Duration { return s.Complete().Up.Every }),
	scaleDuration("scale.down.window", "5m", "AUTO-2",
		"The group shrinks to the largest size that load has asked for within this time.",
		0, 24*time.Hour, func(s *ScaleSpec) Duration { return *s.Complete().Down.Window }),
	scaleStep("scale.down.step", "25%", "The most instances, or the percentage of the size, that are removed at once.",
		func(s *ScaleSpec) Amount { return s.Complete().Down.Step }),
	scaleDuration("scale.down.every", "1m", "AUTO-2", "How long after a change of size the group may shrink.",
		time.Second, time.Hour, func(s *ScaleSpec) Duration { return s.Complete().Down.Every }),
	scaleField("scale.mode", "string", ScaleAct, "AUTO-4", `"act" or "advise"`,
		"advise: the size stays as size says; status and journal say what it would be.",
		func(s *ScaleSpec) any { return s.Complete().Mode },
		func(s *ScaleSpec) bool { return oneOf(s.Mode, "", ScaleAct, ScaleAdvise) }),
}

// scaleField is a field of scale; it is right where there is no scale.
func scaleField(path, kind, def, rule, allowed, doc string, get func(*ScaleSpec) any, ok func(*ScaleSpec) bool) Field {
	return Field{
		Path: path, Type: kind, Default: def, Allowed: allowed, Rule: rule, Doc: doc,
		value: func(g *Group) any { return get(g.Scale) },
		ok:    func(g *Group) bool { return g.Scale == nil || ok(g.Scale) },
	}
}

func scaleDuration(path, def, rule, doc string, low, high time.Duration, get func(*ScaleSpec) Duration) Field {
	return scaleField(path, "duration", def, rule, fmt.Sprintf("%s to %s", low, high), doc,
		func(s *ScaleSpec) any { return get(s) },
		func(s *ScaleSpec) bool { d := get(s).D(); return d >= low && d <= high })
}

func scaleStep(path, def, doc string, get func(*ScaleSpec) Amount) Field {
	allowed := fmt.Sprintf("1 to %d, or 1%% to 100%%", maxBudget)
	return scaleField(path, "integer or percentage", def, "AUTO-2", allowed, doc,
		func(s *ScaleSpec) any { return get(s) },
		func(s *ScaleSpec) bool { a := get(s); return a != 0 && a.inRange(maxBudget) })
}

// targetField is a field of each target.
func targetField(path, kind, def, allowed, doc string, get func(*ScaleTarget) any, ok func(*ScaleTarget) bool) Field {
	return Field{
		Path: "scale.targets[]." + path, Type: kind, Default: def, Allowed: allowed, Rule: "AUTO-1", Doc: doc,
		wrong: func(g *Group) (out []FieldError) {
			if g.Scale == nil {
				return nil
			}
			for i := range g.Scale.Targets {
				if t := &g.Scale.Targets[i]; !ok(t) {
					out = append(out, FieldError{
						Path: fmt.Sprintf("scale.targets[%d].%s", i, path), Value: show(get(t)), Allowed: allowed, Rule: "AUTO-1",
					})
				}
			}
			return out
		},
	}
}

// wrongTargets judges the list as a whole, and whether the group can follow its load at all.
func wrongTargets(g *Group) (out []FieldError) {
	s := g.Scale
	if s == nil {
		return nil
	}
	wrong := func(path, value, allowed string) {
		out = append(out, FieldError{Path: path, Value: value, Allowed: allowed, Rule: "AUTO-1"})
	}
	if n := len(s.Targets); n == 0 && len(s.Schedule) == 0 || n > maxTargets {
		wrong("scale.targets", number(n, "target"), fmt.Sprintf("1 to %d targets", maxTargets))
	}
	if g.Lifecycle == LifecycleTask {
		wrong("scale", "a task", "left out: a task ends, and has no load to follow")
	}
	if g.Provider == ProviderNone {
		wrong("scale", "provider none", "left out: nothing makes the machines")
	}
	if n := g.Size; n != 0 && s.Max >= s.Least() && (n < s.Least() || n > s.Max) {
		wrong("size", fmt.Sprint(n), fmt.Sprintf("%d to %d, the bounds of scale, or 0", s.Least(), s.Max))
	}
	first := map[string]int{}
	for i, t := range s.Targets {
		field, name := "metric", t.Metric
		if t.From != "" {
			field, name = "from", t.From
		}
		if earlier, twice := first[field+name]; twice {
			wrong(fmt.Sprintf("scale.targets[%d].%s", i, field), show(name),
				fmt.Sprintf("another metric than scale.targets[%d] has", earlier))
		}
		first[field+name] = i
	}
	return out
}

// growsOnly reports whether nothing can make the group shrink.
func (s *ScaleSpec) growsOnly() bool {
	if len(s.Targets) == 0 {
		return false // the schedule can
	}
	for _, t := range s.Targets {
		if t.Metric != MetricMemory {
			return false
		}
	}
	return true
}
