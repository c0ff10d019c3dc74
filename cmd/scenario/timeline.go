package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Source says where an entry of the timeline comes from.
type Source string

// The sources.
const (
	Happens  Source = "event"    // the scenario
	Over     Source = "over"     // an event of the scenario that lasted has ended
	World    Source = "world"    // what else befalls the world, or follows from the scenario
	Decision Source = "decision" // the leader
	Verdict  Source = "verdict"  // the leader too: what it takes an instance for
	Machine  Source = "machine"  // a provider
	Standing Source = "standing" // a group is whole, or is not any more
)

// Entry is one thing that happened, or several of a kind that were summed up.
type Entry struct {
	At       time.Duration `json:"-"`
	Time     string        `json:"at"` // as Clock has it
	Source   Source        `json:"source"`
	Rule     string        `json:"rule,omitempty"`
	Group    string        `json:"group,omitempty"`
	Instance string        `json:"instance,omitempty"` // of a single one
	What     string        `json:"what"`
	Why      string        `json:"why,omitempty"`
	Count    int           `json:"count,omitempty"` // of what was summed up
	Until    string        `json:"until,omitempty"` // when the last of them was

	minor bool // a step on the way, which the short timeline leaves out
	last  time.Duration
}

// Clock is a time from the beginning as timelines show it: 00:05:00.
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

// anonymous is a sentence without the names of instances.
func anonymous(s string) string { return instanceID.ReplaceAllString(s, "…") }

// placeless is a sentence without the names of zones either.
func placeless(s string) string { return zones.ReplaceAllString(anonymous(s), "zone …") }

// Fold leaves out what is only a step on the way, and sums up what happened repeatedly, where it
// happened first. An event of the scenario is never summed up, and nothing is across one.
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

// with is an entry summed up with a later one of its kind.
func (e Entry) with(other Entry) Entry {
	e.Count++
	e.Instance = ""
	e.last = other.At
	if e.What = anonymous(e.What); e.What != anonymous(other.What) {
		e.What = placeless(e.What)
	}
	if !strings.HasSuffix(e.Why, " …") {
		mine, its := anonymous(e.Why), anonymous(other.Why)
		if mine != its && placeless(mine) == placeless(its) {
			mine, its = placeless(mine), placeless(its)
		}
		e.Why = mine
		if numbers.ReplaceAllString(mine, "#") != numbers.ReplaceAllString(its, "#") {
			e.Why += " …"
		}
	}
	if other.At.Truncate(time.Second) > e.At.Truncate(time.Second) {
		e.Until = Clock(other.At)
	}
	return e
}

// inOrder sorts entries by time; those of one time stay as they are.
func inOrder(all []Entry) []Entry {
	slices.SortStableFunc(all, func(a, b Entry) int { return int(a.At - b.At) })
	return all
}
