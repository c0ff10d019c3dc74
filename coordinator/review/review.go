package review

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// Before is how much of the journal before a span Of needs, to know why a slot was empty when the
// span began.
const Before = 24 * time.Hour

// Input is what a report is computed from.
type Input struct {
	From, To  time.Time
	Kept      time.Duration // how long the journal keeps entries
	Created   time.Time     // of the shard, or its last restore: nothing before counts; zero: unknown
	Entries   []store.JournalEntry
	Instances []store.Instance // the records of now
	// Loads are of the same time; only summaries need them.
	Loads []store.Load
	// Days are the summaries of days, for what the journal no longer has.
	Days []store.Day
}

// Report is how the groups of a shard did.
type Report struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Groups []Group   `json:"groups"` // by name
	// Unknown is what the journal cannot know, in sentences.
	Unknown []string `json:"unknown"`
}

// Group is how one group did.
type Group struct {
	Name string `json:"group"`
	// Available is the part of the wanted time in which slots were served, in percent.
	Available float64        `json:"available_percent"`
	Wanted    store.Duration `json:"wanted"` // the time of all slots together
	Lost      store.Duration `json:"lost"`   // of it without a healthy instance
	Causes    []Cause        `json:"causes"` // the one that cost most first
	// Detect is from the first evidence until the verdict, Replace from there until the
	// replacement was requested, Heal from the first evidence until the slot was served again.
	Detect  Spread `json:"detect"`
	Replace Spread `json:"replace"`
	Heal    Spread `json:"heal"`
	Made    []Made `json:"made"` // machines, by why; most first
}

// Cause is why slots were not served.
type Cause = store.Cost

// Made is how many machines were requested for a reason.
type Made = store.Made

// Total returns how many machines were requested.
func (g Group) Total() (n int) {
	for _, m := range g.Made {
		n += m.Count
	}
	return n
}

// Of computes a report.
func Of(in Input) Report {
	r := Report{From: in.From, To: in.To, Groups: []Group{}, Unknown: []string{}}
	reach := in.To.Add(-in.Kept)
	beyond := in.Kept > 0 && r.From.Before(reach)
	days, begin := earlier(in.Days, r.From, reach)
	switch {
	case !beyond:
		days = nil
	case len(days) > 0:
		r.From = begin
		r.Unknown = append(r.Unknown, ofDays(days, store.Later(reach, in.Created))...)
		if in.From = after(days); in.From.Before(reach) {
			in.From = reach
		}
	default:
		r.From = reach
		r.Unknown = append(r.Unknown, fmt.Sprintf("The journal keeps entries for %s (events_kept): the report begins there.",
			reason.Span(in.Kept)))
		in.From = r.From
	}
	if in.From.Before(in.Created) {
		in.From = in.Created
		if len(days) == 0 {
			r.From = in.From
		}
	}
	w := walked(in)
	names := map[string]bool{}
	for name := range w.groups {
		names[name] = true
	}
	sums := map[string]*sum{}
	for i := range days {
		d := &days[i]
		names[d.Group] = true
		if sums[d.Group] == nil {
			sums[d.Group] = &sum{}
		}
		sums[d.Group].day(d)
	}
	for name := range names {
		s := sums[name]
		if s == nil {
			s = &sum{}
		}
		if g := w.groups[name]; g != nil {
			s.walked(g, r.To)
		}
		r.Groups = append(r.Groups, s.group(name))
	}
	slices.SortFunc(r.Groups, func(a, b Group) int { return cmp.Compare(a.Name, b.Name) })
	r.Unknown = append(r.Unknown,
		"When a machine failed is not known: times count from the first sign that a coordinator had of it.",
		"A new slot counts once its first instance is healthy or has failed, or 10m after the first request for one: "+
			"what held up that request is not in here.")
	if w.more > 0 {
		r.Unknown = append(r.Unknown, fmt.Sprintf(
			"In large failures the journal has only the number of some verdicts (%s): those are missing here.",
			reason.Number(w.more, "time")))
	}
	return r
}

// walked goes through the journal from in.From to in.To.
func walked(in Input) *walk {
	w := &walk{from: in.From, to: in.To, groups: map[string]*group{}}
	entries := inOrder(in.Entries)
	w.begin(entries, in.Instances)
	for i := range entries {
		w.take(&entries[i])
	}
	return w
}

// inOrder returns entries by time. Its argument stays as it is.
func inOrder(entries []store.JournalEntry) []store.JournalEntry {
	by := func(a, b store.JournalEntry) int { return a.At.Compare(b.At) }
	if slices.IsSortedFunc(entries, by) {
		return entries
	}
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, by)
	return entries
}
