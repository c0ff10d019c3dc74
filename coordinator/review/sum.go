package review

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// sum adds up what is known of a group.
type sum struct {
	wanted, lost          time.Duration
	causes                []Cause
	made                  []Made
	detect, replace, heal weighted
}

// walked adds what the journal has.
func (s *sum) walked(g *group, to time.Time) {
	g.end(to)
	s.wanted, s.lost = s.wanted+g.wanted, s.lost+g.lost
	for _, c := range g.causes {
		s.cost(*c)
	}
	for why, n := range g.made {
		s.make(Made{Why: why, Count: n})
	}
	s.detect.samples(g.detect)
	s.replace.samples(g.replace)
	s.heal.samples(g.heal)
}

// day adds the summary of a day.
func (s *sum) day(d *store.Day) {
	s.wanted, s.lost = s.wanted+d.Wanted.D(), s.lost+d.Lost.D()
	for _, c := range d.Causes {
		s.cost(c)
	}
	for _, m := range d.Made {
		s.make(m)
	}
	s.detect.day(d.Detect)
	s.replace.day(d.Replace)
	s.heal.day(d.Heal)
}

func (s *sum) cost(c Cause) {
	i := slices.IndexFunc(s.causes, func(o Cause) bool { return o.Why == c.Why })
	if i < 0 {
		s.causes = append(s.causes, c)
		return
	}
	s.causes[i].Lost += c.Lost
	s.causes[i].Times += c.Times
}

func (s *sum) make(m Made) {
	i := slices.IndexFunc(s.made, func(o Made) bool { return o.Why == m.Why })
	if i < 0 {
		s.made = append(s.made, m)
		return
	}
	s.made[i].Count += m.Count
}

// order puts what cost most, and what made most, first.
func (s *sum) order() {
	slices.SortFunc(s.causes, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.Lost, a.Lost), cmp.Compare(a.Why, b.Why))
	})
	slices.SortFunc(s.made, func(a, b Made) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Why, b.Why))
	})
}

// group returns the sum as the group's report.
func (s *sum) group(name string) Group {
	s.order()
	out := Group{
		Name: name, Available: 100, Wanted: store.Duration(s.wanted), Lost: store.Duration(s.lost),
		Detect: s.detect.spread(), Replace: s.replace.spread(), Heal: s.heal.spread(),
		Causes: s.causes, Made: s.made,
	}
	if out.Causes == nil {
		out.Causes = []Cause{}
	}
	if out.Made == nil {
		out.Made = []Made{}
	}
	if s.wanted > 0 {
		out.Available = 100 * (1 - float64(s.lost)/float64(s.wanted))
	}
	return out
}

// earlier returns the summaries of whole days from the day of a time on that end before the journal
// begins, by day, and when the first of them begins.
func earlier(all []store.Day, from, reach time.Time) (days []store.Day, begin time.Time) {
	first := from.UTC().Truncate(dayLong).Format(store.DayLayout)
	last := reach.UTC().Add(dayLong - 1).Truncate(dayLong).Format(store.DayLayout)
	for _, d := range all {
		if d.Day >= first && d.Day < last {
			days = append(days, d)
		}
	}
	slices.SortFunc(days, func(a, b store.Day) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Group, b.Group))
	})
	if len(days) > 0 {
		begin = beginOf(days[0].Day)
	}
	return days, begin
}

// after returns when the last of these days has ended.
func after(days []store.Day) time.Time { return beginOf(days[len(days)-1].Day).Add(dayLong) }

const dayLong = 24 * time.Hour

// beginOf returns when a day begins; the zero time if it is none.
func beginOf(day string) time.Time {
	at, _ := time.Parse(store.DayLayout, day) // what cannot be read is before everything else
	return at
}

// ofDays says what a report cannot know that rests on summaries of days.
func ofDays(days []store.Day, reach time.Time) (unknown []string) {
	unknown = append(unknown, fmt.Sprintf(
		"Before %s the report rests on summaries of days (UTC): of many times their percentiles are approximations.",
		after(days).Format(store.DayLayout)))
	type missed struct{ uncounted, unread int }
	there := map[string]missed{} // each group of a day has the same numbers, of all groups together
	for _, d := range days {
		m := there[d.Day]
		there[d.Day] = missed{max(m.uncounted, d.Uncounted), max(m.unread, d.Unread)}
	}
	uncounted, unread := 0, 0
	for _, m := range there {
		uncounted, unread = uncounted+m.uncounted, unread+m.unread
	}
	if uncounted > 0 {
		unknown = append(unknown, fmt.Sprintf(
			"In large failures of these days the journal had only the number of some verdicts (%s).",
			reason.Number(uncounted, "time")))
	}
	if unread > 0 {
		unknown = append(unknown, fmt.Sprintf("Of these days %s not summed up: there were too many.",
			reason.Counted(unread, "entry is", "entries are")))
	}
	span := int(after(days).Sub(beginOf(days[0].Day)) / dayLong)
	if missing := span - len(there); missing > 0 {
		unknown = append(unknown, fmt.Sprintf("Of %d of these days there is no summary.", missing))
	}
	if gap := reach.Sub(after(days)); gap > 0 {
		unknown = append(unknown, fmt.Sprintf("Of %s after them nothing is known.", reason.Span(gap)))
	}
	return unknown
}
