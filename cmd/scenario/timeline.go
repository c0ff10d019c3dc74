package scenario

import (
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
	return time.Time{}.Add(d).Format("15:04:05")
}

// foldWithin is how long after the first of its kind an entry is still counted with it.
const foldWithin = time.Minute

var (
	instanceID = regexp.MustCompile(`\b[a-z][a-z0-9-]*-\d+-[a-z0-9]{4,}\b`)
	numbers    = regexp.MustCompile(`\d[\d.]*`)
)

// anonymous is a sentence without the names of instances.
func anonymous(s string) string { return instanceID.ReplaceAllString(s, "…") }

// Fold leaves out what is only a step on the way, and sums up what happened repeatedly within a minute, where it happened first. An
// event of the scenario is never summed up, and nothing is across one.
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
		key := strings.Join([]string{string(e.Source), e.Rule, e.Group, anonymous(e.What)}, "\x00")
		i, seen := first[key]
		if !seen || e.At-out[i].At > foldWithin {
			first[key] = len(out)
			e.Count = 1
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
	e.What = anonymous(e.What)
	if !strings.HasSuffix(e.Why, " …") {
		same := numbers.ReplaceAllString(anonymous(e.Why), "#") == numbers.ReplaceAllString(anonymous(other.Why), "#")
		e.Why = anonymous(e.Why)
		if !same {
			e.Why += " …"
		}
	}
	if other.At.Truncate(time.Second) > e.At.Truncate(time.Second) {
		e.Until, e.last = Clock(other.At), other.At
	}
	return e
}

// inOrder sorts entries by time; those of one time stay as they are.
func inOrder(all []Entry) []Entry {
	slices.SortStableFunc(all, func(a, b Entry) int { return int(a.At - b.At) })
	return all
}
