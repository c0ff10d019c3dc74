package store

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// errLocalZone: the local zone differs between coordinators.
var errLocalZone = errors.New("the zone must be named: what is local differs between coordinators")

const (
	maxWindows     = 50
	longestWindow  = 7 * 24 * time.Hour
	maxWhy         = 200
	maxGrace       = 30 * 24 * time.Hour
	freezeTimeForm = "a time like 2026-12-20T00:00:00Z or 2026-12-20T00:00:00+01:00"
)

var windowFrom = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)

// allowedWork is what a window may allow.
var allowedWork = append(slices.Clone(PlannedWork), PlannedDrill)

// windowField returns a field of each window.
func windowField[T any](path, kind, def, allowed, doc string, get func(*Window) T, ok func(T) bool) Field {
	return Field{
		Path: "windows[]." + path, Type: kind, Default: def, Allowed: allowed, Rule: "ROLL-6", Doc: doc,
		wrong: func(g *Group) []FieldError {
			var out []FieldError
			for i := range g.Windows {
				if v := get(&g.Windows[i]); !ok(v) {
					out = append(out, FieldError{
						Path: fmt.Sprintf("windows[%d].%s", i, path), Value: show(v), Allowed: allowed, Rule: "ROLL-6",
					})
				}
			}
			return out
		},
	}
}

// oneOfEach reports whether a list has each of its texts once, and only those that are known.
func oneOfEach(known []string) func([]string) bool {
	return func(list []string) bool {
		for i, s := range list {
			if !slices.Contains(known, s) || slices.Contains(list[:i], s) {
				return false
			}
		}
		return true
	}
}

// tooMany refuses a list of more than so many.
func tooMany(path, rule, what string, n, most int) []FieldError {
	if n <= most {
		return nil
	}
	return []FieldError{{Path: path, Value: number(n, what), Allowed: fmt.Sprintf("at most %d", most), Rule: rule}}
}

// windowFields are the fields of a group's windows and of its freeze.
var windowFields = []Field{
	{
		Path: "windows", Type: "list of windows", Default: "none: at any time", Rule: "ROLL-6",
		Allowed: fmt.Sprintf("at most %d", maxWindows),
		Doc: "When rolls, expiry, rebalancing and scale-down may begin with an instance. What has begun is brought to " +
			"its end. Healing, notices, evacuation, operators' orders and rollbacks wait for no window.",
		wrong: func(g *Group) []FieldError {
			return tooMany("windows", "ROLL-6", "window", len(g.Windows), maxWindows)
		},
	},
	windowField("days", "list of strings", "every day", "different ones of mon, tue, wed, thu, fri, sat and sun",
		"On which days it opens.", func(w *Window) []string { return w.Days }, oneOfEach(weekdays)),
	windowField("from", "string", "", `a time of day, written as text: "22:00"`,
		"When it opens, by the clock of its time zone. A time skipped by a clock change counts as the moment "+
			"of the jump; of a repeated time the first counts.",
		func(w *Window) string { return w.From }, windowFrom.MatchString),
	windowField("for", "duration", "", fmt.Sprintf("%s to %s", time.Minute, longestWindow),
		"How long it stays open, of elapsed time.", func(w *Window) Duration { return w.For },
		func(d Duration) bool { return d.D() >= time.Minute && d.D() <= longestWindow }),
	windowField("time_zone", "string", "UTC", "a time zone like Europe/Berlin",
		"Whose clock from is read on.", func(w *Window) string { return w.TimeZone },
		func(name string) bool { _, err := zoneNamed(name); return err == nil }),
	windowField("allow", "list of strings", "all of them", "different ones of "+strings.Join(allowedWork, ", "),
		"What may begin in it. What no window of the group allows never begins.",
		func(w *Window) []string { return w.Allow }, oneOfEach(allowedWork)),
	{
		Path: "freeze.from", Type: "string", Default: "it has begun", Rule: "ROLL-6",
		Allowed: freezeTimeForm + ", before freeze.to",
		Doc:     "When a freeze begins, in which nothing begins that waits for windows, in a window or not.",
		value:   func(g *Group) any { return g.Freeze.From },
		ok: func(g *Group) bool {
			if g.Freeze.From == "" {
				return true
			}
			from, err := time.Parse(time.RFC3339, g.Freeze.From)
			to, unknown := time.Parse(time.RFC3339, g.Freeze.To)
			return err == nil && (unknown != nil || from.Before(to))
		},
	},
	{
		Path: "freeze.to", Type: "string", Default: "no freeze", Rule: "ROLL-6",
		Allowed: freezeTimeForm + ", where there is freeze.from or freeze.why",
		Doc:     "When the freeze ends.",
		value:   func(g *Group) any { return g.Freeze.To },
		ok: func(g *Group) bool {
			_, err := time.Parse(time.RFC3339, g.Freeze.To)
			return g.Freeze == (FreezeSpec{}) || err == nil
		},
	},
	{
		Path: "freeze.why", Type: "string", Default: "none", Rule: "ROLL-6",
		Allowed: fmt.Sprintf("at most %d characters", maxWhy), Doc: "Why, as status and explain show it.",
		value: func(g *Group) any { return g.Freeze.Why },
		ok:    func(g *Group) bool { return len(g.Freeze.Why) <= maxWhy },
	},
	{
		Path: "expiry.forced_grace", Type: "duration", Default: DefaultForcedGrace.String(), Rule: "ROLL-6",
		Allowed: fmt.Sprintf("0s to %s", maxGrace),
		Doc:     "How long an instance past expiry.forced_age waits for a window or the end of a freeze, at most.",
		value:   func(g *Group) any { return Duration(g.Expiry.Grace()) },
		ok:      func(g *Group) bool { d := g.Expiry.Grace(); return d >= 0 && d <= maxGrace },
	},
}

// neverAllowed returns the planned work that no window of a group allows.
func (g *Group) neverAllowed() []string {
	if len(g.Windows) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(PlannedWork), func(kind string) bool {
		return slices.ContainsFunc(g.Windows, func(w Window) bool {
			return len(w.Allow) == 0 || slices.Contains(w.Allow, kind)
		})
	})
}
