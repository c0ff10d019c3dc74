package store

import (
	"fmt"
	"slices"
)

// Analysis is a number from outside by which a roll is judged (ROLL-5). The source is configured at
// the replicas, and the group names it (SEC-7).
type Analysis struct {
	From string   `json:"from"`
	Max  *float64 `json:"max,omitempty"` // nil: no bound
	Min  *float64 `json:"min,omitempty"`
	For  Duration `json:"for,omitempty"` // 0: DefaultAnalysisFor
}

// DefaultAnalysisFor is how long a number has to be out of its bounds to be taken for true.
const DefaultAnalysisFor = Duration(30e9)

// Holds reports whether a number is within the bounds.
func (a *Analysis) Holds(value float64) bool {
	return (a.Max == nil || value <= *a.Max) && (a.Min == nil || value >= *a.Min)
}

// Bounds returns what the number is to be.
func (a *Analysis) Bounds() string {
	switch {
	case a.Max == nil && a.Min == nil:
		return "anything"
	case a.Max == nil:
		return fmt.Sprintf("at least %v", *a.Min)
	case a.Min == nil:
		return fmt.Sprintf("at most %v", *a.Max)
	default:
		return fmt.Sprintf("%v to %v", *a.Min, *a.Max)
	}
}

// Patience returns how long the number has to be out of its bounds.
func (a *Analysis) Patience() Duration {
	if a.For == 0 {
		return DefaultAnalysisFor
	}
	return a.For
}

// maxAnalyses bounds the analyses of one group.
const maxAnalyses = 10

// analysisFields are the fields of Analysis.
var analysisFields = []Field{
	{
		Path: "rollout.analysis", Type: "list of analyses", Default: "none", Rule: "ROLL-5",
		Allowed: fmt.Sprintf("at most %d with different sources", maxAnalyses),
		Doc: "Numbers from outside by which a roll is judged. It begins with an instance only while all of them are known " +
			"and within their bounds. One that is out of its bounds stops the roll, once an instance has the new template. " +
			"One that is missing proves nothing: the roll waits.",
		wrong: wrongAnalyses,
	},
	analysisField("from", "string", "", "a name of at most 40 of a-z, 0-9 and -, beginning with a letter",
		"The source: one of those that stand under metrics in the file of --providers of the coordinators (SEC-7).",
		func(a *Analysis) any { return a.From },
		func(a *Analysis) bool { return sourceName.MatchString(a.From) }),
	analysisField("max", "number", "none", "not less than min; max, min or both", "The largest that the number may be.",
		func(a *Analysis) any { return bound(a.Max) },
		func(a *Analysis) bool {
			return (a.Max != nil || a.Min != nil) && (a.Max == nil || a.Min == nil || *a.Max >= *a.Min)
		}),
	analysisField("min", "number", "none", "a number", "The smallest that it may be.",
		func(a *Analysis) any { return bound(a.Min) }, func(*Analysis) bool { return true }),
	analysisField("for", "duration", DefaultAnalysisFor.String(), "0s to 1h",
		"How long it has to be out of its bounds, from one answer to another, to stop the roll.",
		func(a *Analysis) any { return a.For },
		func(a *Analysis) bool { return a.For >= 0 && a.For.D().Hours() <= 1 }),
}

func analysisField(path, kind, def, allowed, doc string, get func(*Analysis) any, ok func(*Analysis) bool) Field {
	return Field{
		Path: "rollout.analysis[]." + path, Type: kind, Default: def, Allowed: allowed, Rule: "ROLL-5", Doc: doc,
		wrong: func(g *Group) (out []FieldError) {
			for i := range g.Rollout.Analysis {
				if a := &g.Rollout.Analysis[i]; !ok(a) {
					out = append(out, FieldError{
						Path: fmt.Sprintf("rollout.analysis[%d].%s", i, path), Value: fmt.Sprint(get(a)), Allowed: allowed,
						Rule: "ROLL-5",
					})
				}
			}
			return out
		},
	}
}

func wrongAnalyses(g *Group) (out []FieldError) {
	all := g.Rollout.Analysis
	twice := len(all) > maxAnalyses
	for i := range all {
		twice = twice || slices.ContainsFunc(all[:i], func(a Analysis) bool { return a.From == all[i].From })
	}
	if twice {
		out = append(out, FieldError{
			Path: "rollout.analysis", Value: fmt.Sprintf("%d analyses", len(all)),
			Allowed: fmt.Sprintf("at most %d with different sources", maxAnalyses), Rule: "ROLL-5",
		})
	}
	return out
}

func bound(b *float64) string {
	if b == nil {
		return "none"
	}
	return fmt.Sprint(*b)
}
