package store

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Field describes one field of a group's spec. The table Fields drives validation and the reference
// page.
type Field struct {
	Path    string // as in the group file: report.lease_ttl
	Type    string
	Default string // "" where the operator must say
	Allowed string // the range or the values, as an error message says it
	Rule    string
	Doc     string
	value   func(*Group) any
	ok      func(*Group) bool
	// wrong judges, in place of value and ok, what may be there several times: the paths of its
	// errors have a number between brackets.
	wrong func(*Group) []FieldError
}

// FieldError says which field has a value that is not allowed.
type FieldError struct {
	Path    string
	Value   string
	Allowed string
	Rule    string
	// Name and Known are set where a name is wrong: the name, and those that it could have been.
	Name  string
	Known []string
	// Line and Column are the place within the field's text, from 1; 0: it is about the whole field.
	Line, Column int
}

func (e *FieldError) Error() string {
	msg := fmt.Sprintf("%s: %s: must be %s", e.Path, e.Value, e.Allowed)
	if e.Rule != "" {
		msg += " (" + e.Rule + ")"
	}
	return msg
}

func aged(d *Duration) bool { return d != nil && *d > 0 }

func show(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case Port:
		if _, err := strconv.Atoi(string(v)); err == nil {
			return string(v)
		}
		return strconv.Quote(string(v))
	default:
		return fmt.Sprint(v)
	}
}

// MaxReturnAfter is the longest wait before a return to spot (SPOT-4).
const MaxReturnAfter = 24 * time.Hour

// MaxSize is the most instances that one group may have.
const MaxSize = 100_000

func intField(path, def, rule, doc string, low, high int, get func(*Group) int) Field {
	return Field{
		Path: path, Type: "integer", Default: def, Allowed: fmt.Sprintf("%d to %d", low, high), Rule: rule, Doc: doc,
		value: func(g *Group) any { return get(g) },
		ok:    func(g *Group) bool { n := get(g); return n >= low && n <= high },
	}
}

// ofTheGroup is the default of limits that narrow others.
const ofTheGroup = "as for the group"

// amountField returns a number of instances or a percentage of size.
func amountField(path, def, rule, doc string, get func(*Group) *Amount) Field {
	return Field{
		Path: path, Type: "integer or percentage", Default: def, Allowed: fmt.Sprintf("0 to %d, or 0%% to 100%%", maxBudget),
		Rule: rule, Doc: doc,
		value: func(g *Group) any {
			if a := get(g); a != nil {
				return *a
			}
			return Amount(0)
		},
		ok: func(g *Group) bool { a := get(g); return a == nil || a.inRange(maxBudget) },
	}
}

func durationField(path, def, rule, doc string, low, high time.Duration, get func(*Group) Duration) Field {
	return Field{
		Path: path, Type: "duration", Default: def, Allowed: fmt.Sprintf("%s to %s", low, high), Rule: rule, Doc: doc,
		value: func(g *Group) any { return get(g) },
		ok:    func(g *Group) bool { d := get(g).D(); return d >= low && d <= high },
	}
}

// ageField returns a duration for which the shard may have a default.
func ageField(path, rule, doc string, get func(*Group) *Duration) Field {
	const most = 10 * 365 * 24 * time.Hour
	return Field{
		Path: path, Type: "duration", Default: "the shard's, which is off unless set",
		Allowed: "0s, or 1m0s to " + most.String(), Rule: rule, Doc: doc,
		value: func(g *Group) any {
			if d := get(g); d != nil {
				return *d
			}
			return Duration(0)
		},
		ok: func(g *Group) bool {
			d := get(g)
			return d == nil || *d == 0 || d.D() >= time.Minute && d.D() <= most
		},
	}
}

// atMost returns a field with a duration that must not be longer than another field's. pair returns
// both, and whether they can be compared.
func atMost(f Field, other string, pair func(*Group) (this, that Duration, both bool)) Field {
	f.Allowed += ", and at most " + other
	f.wrong = func(g *Group) []FieldError {
		e := FieldError{Path: f.Path, Value: show(f.value(g)), Allowed: f.Allowed, Rule: f.Rule}
		if !f.ok(g) {
			return []FieldError{e}
		}
		this, that, both := pair(g)
		if !both || this <= that {
			return nil
		}
		e.Allowed += fmt.Sprintf(" (%s)", that)
		return []FieldError{e}
	}
	return f
}

func oneOf(value string, allowed ...string) bool { return slices.Contains(allowed, value) }

func mapField(path, rule, doc, allowed string, key *regexp.Regexp, get func(*Group) map[string]string) Field {
	return Field{
		Path: path, Type: "map of strings", Default: "none", Allowed: allowed, Rule: rule, Doc: doc,
		value: func(g *Group) any { return get(g) },
		ok: func(g *Group) bool {
			m := get(g)
			for k, v := range m {
				if !key.MatchString(k) || len(v) > 4096 {
					return false
				}
			}
			return len(m) <= 100
		},
	}
}

// maxBudget is the largest max_expansion and max_unavailable (REC-18).
const maxBudget = 10000

func distinct(list []string, most int) bool {
	seen := map[string]bool{}
	for _, s := range list {
		if s == "" || len(s) > 100 || seen[s] {
			return false
		}
		seen[s] = true
	}
	return len(list) <= most
}

func runOK(run []string) bool {
	if len(run) > 256 || len(run) > 0 && run[0] == "" {
		return false
	}
	for _, arg := range run {
		if len(arg) > 4096 {
			return false
		}
	}
	return true
}
