package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Source is where an entry of the timeline comes from.
type Source string

// The sources.
const (
	Happens  Source = "event"    // an event of the scenario
	Over     Source = "over"     // an event of the scenario that lasted has ended
	World    Source = "world"    // other events of the simulated world
	Decision Source = "decision" // the leader
	Verdict  Source = "verdict"  // the leader's verdict on an instance
	Machine  Source = "machine"  // a provider
	Standing Source = "standing" // a group is as wanted, or no longer is
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

	varies bool // it sums up entries whose reasons differ
	minor  bool // an intermediate step, which the short timeline leaves out
	last   time.Duration
}

// Clock formats a time since the beginning: 00:05:00.
func Clock(d time.Duration) string {
	s := int(d / time.Second)
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}

// foldWithin is how long after the last of its kind an entry is still counted with it.
const foldWithin = 90 * time.Second

var (
	instanceID = regexp.MustCompile(`\b[a-z][a-z0-9-]*-\d+-[a-z0-9]{4,}\b`)
	numbers    = regexp.MustCompile(`\d[\d.]*`)
	zones      = regexp.MustCompile(`\bzone \S+`)
)

// anonymous returns a sentence without the names of instances.
func anonymous(s string) string { return instanceID.ReplaceAllString(s, "…") }

// placeless returns a sentence without the names of zones either.
func placeless(s string) string { return zones.ReplaceAllString(anonymous(s), "zone …") }

// Fold drops intermediate steps, and sums up repeated entries at the place of the first. An event
// of the scenario is never summed up, and no entries are summed up across one.
func Fold(all []Entry) []Entry {
	var out []Entry
	first := map[string]int{}
	for _, e := range all {
		switch {
		case e.minor:
			continue
		case e.Source == Happens || e.Source == Over:
			clear(first)
			out = append(out, e)
			continue
		case e.Source == Standing:
			out = append(out, e)
			continue
		}
		key := strings.Join([]string{string(e.Source), e.Rule, e.Group, placeless(e.What)}, "\x00")
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

// with returns an entry summed up with a later one of its kind.
func (e Entry) with(other Entry) Entry {
	e.Count++
	e.Instance = ""
	e.last = other.At
	if e.What = anonymous(e.What); e.What != anonymous(other.What) {
		e.What = placeless(e.What)
	}
	if !e.varies {
		mine, its := anonymous(e.Why), anonymous(other.Why)
		if mine != its && placeless(mine) == placeless(its) {
			mine, its = placeless(mine), placeless(its)
		}
		e.Why = mine
		if numbers.ReplaceAllString(mine, "#") != numbers.ReplaceAllString(its, "#") {
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
