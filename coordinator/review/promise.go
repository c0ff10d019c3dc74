package review

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// Promise is what a group promises for a drill, and what was observed (DAY-6).
type Promise struct {
	What     string `json:"what"`
	Promised string `json:"promised"`
	Seen     string `json:"seen"`
	Kept     bool   `json:"kept"`
}

// seenLag is by how much later something may be seen than it has happened.
const seenLag = 1500 * time.Millisecond

// Promises compares a drill with what the group promises. Blamed are the slots that count a failure
// for it.
func (d DrillSeen) Promises(g store.Group, blamed []string) (lines []Promise) {
	for i := range d.Instances {
		lines = append(lines, d.Instances[i].promises(g, d.Kind)...)
	}
	return append(lines,
		Promise{"other instances", "none fails", listOrNone(d.Others), len(d.Others) == 0},
		Promise{"blamed for it", "nothing (DAY-6)", listOrNone(blamed), len(blamed) == 0})
}

func (i *DrilledSeen) promises(g store.Group, kind store.DrillKind) []Promise {
	bound, rules := g.Report.LeaseTTL.D()+seenLag, "(DET-2, DET-4)"
	switch kind {
	case store.DrillWorkload:
		bound, rules = g.Report.Interval.D()+seenLag, "(DET-1, DET-9)" // its end is news that is reported at once
	case store.DrillAgent:
		rules = "(DET-2, DET-3)"
	case store.DrillMachine:
	}
	detect, serve := i.Seen.Sub(i.Ended), i.Served.Sub(i.Ended)
	lines := []Promise{{
		i.Instance + " detected", "within " + Took(bound) + " " + rules,
		fmt.Sprintf("%s after %s", cmp.Or(string(i.Verdict), "-"), Took(detect)), !i.Seen.IsZero() && detect <= bound,
	}}
	switch {
	case !i.Returned.IsZero():
		return append(lines, Promise{
			i.Instance + " kept", "if it is back in time (DET-15)", "back after " + Took(i.Returned.Sub(i.Ended)),
			i.Replaced.IsZero(),
		})
	case !i.Restarted.IsZero() && (i.Replaced.IsZero() || i.Restarted.Before(i.Replaced)):
		later := i.Restarted.Sub(i.Seen)
		lines = append(lines, Promise{
			i.Instance + " restarted", "at once (HEAL-1)", Took(later) + " later", later <= seenLag,
		})
	case kind == store.DrillAgent: // counted from the last sign of life: suspicion alone replaces nothing
		replace := i.Replaced.Sub(i.Ended)
		lines = append(lines, Promise{
			i.Instance + " replaced", "within " + Took(bound) + ", if it is not back (DET-2, DET-4)",
			fmt.Sprintf("%s after %s", cmp.Or(i.Replacement, "-"), Took(replace)), !i.Replaced.IsZero() && replace <= bound,
		})
	default:
		later := i.Replaced.Sub(i.Seen)
		rule := "DET-4"
		if kind == store.DrillWorkload {
			rule = "HEAL-2"
		}
		lines = append(lines, Promise{
			i.Instance + " replaced", "at once (" + rule + ")", fmt.Sprintf("%s, %s later", cmp.Or(i.Replacement, "-"),
				Took(later)), !i.Replaced.IsZero() && later <= seenLag,
		})
	}
	return append(lines, Promise{
		i.Instance + " served again", "when it is healthy again", "after " + Took(serve), !i.Served.IsZero(),
	})
}

func listOrNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// Outcome is what became of a drill, as a whole.
type Outcome string

// Outcomes of drills.
const (
	OutcomeOpen    Outcome = "open" // it goes on: nothing is judged yet
	OutcomeRefused Outcome = "refused"
	OutcomeUnknown Outcome = "unknown" // what the group promised is not known
	OutcomeKept    Outcome = "kept"    // each promise
	OutcomeBroken  Outcome = "broken"
)

// Outcome judges the drill by its promises; none if they are not known.
func (d DrillSeen) Outcome(promises []Promise) Outcome {
	switch {
	case d.Refused != "":
		return OutcomeRefused
	case !d.Over():
		return OutcomeOpen
	case len(promises) == 0:
		return OutcomeUnknown
	case slices.ContainsFunc(promises, func(p Promise) bool { return !p.Kept }):
		return OutcomeBroken
	default:
		return OutcomeKept
	}
}

// Blames names a slot for each failure of a drilled instance that it counts.
func (d DrillSeen) Blames(s *store.Slot) (blamed []string) {
	for _, f := range s.Failures {
		if slices.ContainsFunc(d.Instances, func(i DrilledSeen) bool { return i.Instance == f.Instance }) {
			blamed = append(blamed, fmt.Sprintf("slot %d", s.Number))
		}
	}
	return blamed
}

// Took shows a time with its tenths where they count.
func Took(d time.Duration) string {
	if d < 10*time.Second {
		return max(d, 0).Round(100 * time.Millisecond).String()
	}
	return reason.Span(d)
}

// Percent never rounds up to 100: what was lost shows.
func Percent(p float64) string {
	if p < 100 && p > 99.999 {
		p = 99.999
	}
	return fmt.Sprintf("%.3f%%", p)
}
