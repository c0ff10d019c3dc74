package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/coordinator/view"
)

func (m *model) drawGroup(s *screen, at *spot, now time.Time) {
	s.command = "leasehold explain " + at.group
	v, read := m.views.Group(at.group, now)
	switch {
	case !read:
		s.unread()
		return
	case !v.Found:
		s.add(line{text: "The shard has no group " + reason.OneLine(at.group) + " any more; e shows what the journal says"})
		return
	}
	head := fmt.Sprintf("%s, %s run", v.Row.State, v.Row.Run)
	if v.Row.Health >= 0 {
		head += fmt.Sprintf(", %d%% healthy", v.Row.Health)
	}
	if !v.Row.Since.IsZero() {
		head += ", for " + output.Age(now, v.Row.Since)
	}
	s.add(line{text: head})
	if v.Row.Now != "-" {
		style := s.Notice
		if v.Row.Mark == "!" {
			style = s.Alarm
		}
		s.wrapped(line{}, strings.TrimSpace(v.Row.Mark)+" ", v.Row.Now, style)
	}
	for _, p := range v.Problems {
		if !p.Held { // it is below, with what would free it
			s.problem(p, place{kind: ofEvents, group: at.group})
		}
	}
	for _, l := range v.Lines {
		s.wrapped(line{}, "  ", l, plain)
	}
	s.blocked(v.Blocked)
	s.upcoming(v.Upcoming, now)
	s.grid(v.Cells)
	s.change(&v, now)
	s.load(&v, now)
	s.axis(m.views.Axis(at.group, time.Hour, axisColumns(m.width), now))
	s.units(v.Units, at.filter, now)
	s.recent(m.views.Events(view.Wanted{Group: at.group, Most: 30}).Entries, now)
}

// axisColumns is how many columns the time axis has: a number that divides an hour.
func axisColumns(width int) int {
	if width < 72 {
		return 20
	}
	return 60
}

// blocked says why something does not happen yet, and what would free it.
func (s *screen) blocked(all []story.Blockage) {
	if len(all) == 0 {
		return
	}
	s.title("why not yet")
	for _, b := range all {
		l := line{bad: true, name: b.Rule + b.What()}
		if len(b.Instances) == 1 {
			l.to = place{kind: ofInstance, group: b.Of.Group, instance: b.Instances[0]}
		}
		s.wrapped(l, "  ", b.What()+" ("+b.Rule+"): "+b.Why(), s.Notice)
		command := b.Frees()
		if until := b.Until(); until != "" && until != command {
			s.wrapped(line{}, "    freed when: ", until, plain)
		}
		if command != "" {
			s.wrapped(line{}, "    freed by: ", command, plain)
		}
	}
}

// upcoming says when something is decided next.
func (s *screen) upcoming(l *story.Upcoming, now time.Time) {
	if l == nil {
		return
	}
	s.wrapped(line{}, "next decision: ", fmt.Sprintf("in %s: %s (%s); at once when anything changes",
		output.Span(l.At.Sub(now)), l.What, l.Rule), plain)
}

// grid shows a sign for each slot, in bands of zones.
func (s *screen) grid(cells []view.Cell) {
	bands := map[string][]string{}
	for _, c := range cells {
		zone := "1vacant"
		switch {
		case c.Slot < 0:
			zone = "2on demand"
		case len(c.Units) > 0:
			zone = "0" + cmp.Or(c.Units[0].Zone, "all")
		}
		text := ""
		for _, u := range c.Units {
			text += s.styled(u.Kind, sign(u.Kind))
		}
		if text == "" {
			text = s.Dim(sign("vacant"))
		}
		bands[zone] = append(bands[zone], text)
	}
	s.title("slots  " + legend(view.Counts(cells)))
	for _, zone := range slices.Sorted(maps.Keys(bands)) {
		name := fmt.Sprintf("  %-10s ", output.Fit(reason.OneLine(zone[1:]), 10))
		row, used, most := name, 0, max(10, s.Width-len([]rune(name))-1)
		for _, sign := range bands[zone] {
			width := ansi.StringWidth(sign)
			if used+width > most {
				s.add(line{text: row})
				row, used = strings.Repeat(" ", len([]rune(name))), 0
			}
			row, used = row+sign, used+width
		}
		s.add(line{text: row})
	}
}

// legend counts instances by state, with their signs.
func legend(counts map[string]int) string {
	var parts []string
	for _, kind := range view.Kinds {
		if counts[kind] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d %s", sign(kind), counts[kind], kind))
		}
	}
	return strings.Join(parts, "  ")
}

// units is the table of a group's instances, worst first.
func (s *screen) units(all []view.Unit, filter string, now time.Time) {
	shown := slices.DeleteFunc(slices.Clone(all), func(u view.Unit) bool {
		words := strings.Join([]string{u.ID, u.Kind, u.Zone, u.Phase, u.Template}, " ")
		return filter != "" && !strings.Contains(words, filter)
	})
	slices.SortStableFunc(shown, func(a, b view.Unit) int { return cmp.Compare(view.Worst(a.Kind), view.Worst(b.Kind)) })
	title := "instances, worst first"
	if filter != "" {
		title = fmt.Sprintf("instances: %d of %d", len(shown), len(all))
	}
	s.title(title)
	if len(shown) == 0 {
		s.add(line{text: "  none"})
		return
	}
	t := output.Table{Columns: []output.Column{
		{Title: " "},
		{Title: "INSTANCE"},
		{Title: "IS"},
		{Title: "SLOT", Right: true},
		{Title: "ZONE"},
		{Title: "WHY", Cut: true},
		{Title: "AGE"},
	}}
	var rows []line
	for _, u := range shown[:min(len(shown), maxRows)] {
		slot := "-"
		if u.Slot >= 0 {
			slot = fmt.Sprint(u.Slot)
		}
		why := u.Why
		switch {
		case why == "" && u.Now != "-":
			why = u.Now
		case why == "" && u.Replaces != "":
			why = "in place of " + u.Replaces
		case why != "" && u.Rule != "":
			why = u.Rule + " " + why
		}
		t.Add(sign(u.Kind), u.ID, u.Kind, slot, orDash(u.Zone), orDash(why), output.Age(now, u.Created))
		to := place{kind: ofInstance, group: u.Group, instance: u.ID}
		rows = append(rows, line{to: to, bad: isBad(u.Kind), name: u.Kind})
	}
	s.table(t, rows)
	if more := len(shown) - maxRows; more > 0 {
		s.add(line{text: fmt.Sprintf("  and %d more: / finds them", more)})
	}
}

// isBad reports whether n stops at an instance.
func isBad(kind string) bool { return view.Worst(kind) <= view.Worst("suspect") }

func orDash(text string) string { return cmp.Or(text, "-") }
