package scenario

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// Source is where an entry of the timeline comes from.
type Source string

// The sources.
const (
	Happens  Source = "event"    // an event of the scenario
	Over     Source = "over"     // the end of a lasting event of the scenario
	World    Source = "world"    // other events of the simulated world
	Decision Source = "decision" // the leader
	Verdict  Source = "verdict"  // the leader's verdict on an instance
	Machine  Source = "machine"  // a provider
	Wanted   Source = "standing" // a group became complete, or no longer is
)

// Entry is one thing that happened, or several of a kind that were summed up.
type Entry struct {
	At       time.Duration `json:"-"`
	Time     string        `json:"at"` // formatted by Clock
	Source   Source        `json:"source"`
	Rule     string        `json:"rule,omitempty"`
	Group    string        `json:"group,omitempty"`
	Instance string        `json:"instance,omitempty"` // the instance, for a single entry
	What     string        `json:"what"`
	Why      string        `json:"why,omitempty"`
	Count    int           `json:"count,omitempty"` // how many were summed up
	Until    string        `json:"until,omitempty"` // when the last of them was

	effect store.Effect // What as fields, of a decision
	cause  store.Cause  // Why as fields, of a decision or a verdict
	varies bool         // it sums up entries whose reasons differ
	minor  bool         // an intermediate step, which the short timeline leaves out
	last   time.Duration
}

// Clock formats a time since the beginning: 00:05:00.
func Clock(d time.Duration) string {
	s := int(d / time.Second)
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}

// foldWithin is how long after the last of its kind an entry is still counted with it.
const foldWithin = 90 * time.Second

// Fold drops intermediate steps, and sums up repeated entries at the place of the first. An event
// of the scenario is never summed up, and no entries are summed up across one.
func Fold(all []Entry) []Entry {
	var out []Entry
	first := map[foldKey]int{}
	for _, e := range all {
		switch {
		case e.minor:
			continue
		case e.Source == Happens || e.Source == Over:
			clear(first)
			out = append(out, e)
			continue
		case e.Source == Wanted:
			out = append(out, e)
			continue
		}
		key := e.key()
		i, seen := first[key]
		if !seen || e.At-out[i].last > foldWithin {
			first[key] = len(out)
			e.Count, e.last = 1, e.At
			out = append(out, e)
			continue
		}
		out[i] = out[i].with(e)
	}
	for i := range out {
		if out[i].Count == 1 {
			out[i].Count = 0
		}
	}
	return out
}

// foldKey is equal for entries that are summed up.
type foldKey struct {
	source      Source
	rule, group string
	what        string // without the names of instances and zones
}

func (e *Entry) key() foldKey {
	what := e.What
	if e.effect.Kind != "" {
		what = reason.Effect(reason.FoldedEffect(e.effect, true))
	}
	return foldKey{e.Source, e.Rule, e.Group, what}
}

// with returns an entry summed up with a later one of its kind: without the names in which they
// differ.
func (e Entry) with(other Entry) Entry {
	e.Count++
	e.Instance = ""
	e.last = other.At
	if e.effect.Kind != "" {
		zones := reason.Effect(reason.FoldedEffect(e.effect, false)) !=
			reason.Effect(reason.FoldedEffect(other.effect, false))
		e.effect = reason.FoldedEffect(e.effect, zones)
		e.What = reason.Effect(e.effect)
	}
	if !e.varies {
		cause, same := reason.FoldedCause(e.cause, other.cause)
		e.cause, e.Why = cause, reason.Short(cause)
		if !same {
			e.Why += " …"
			e.varies = true
		}
	}
	if other.At.Truncate(time.Second) > e.At.Truncate(time.Second) {
		e.Until = Clock(other.At)
	}
	return e
}

// inOrder sorts entries by time, and is stable.
func inOrder(all []Entry) []Entry {
	slices.SortStableFunc(all, func(a, b Entry) int { return int(a.At - b.At) })
	return all
}
