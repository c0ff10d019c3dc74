package output

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

// ReportTable has a row for each group of a report (DAY-5).
func ReportTable(doc review.Report) Table {
	t := Table{Columns: []Column{
		{Title: "GROUP"},
		{Title: "AVAILABLE", Right: true},
		{Title: "LOST", Right: true},
		{Title: "MOST-LOST-BY", Cut: true},
		{Title: "FAILURES", Right: true},
		{Title: "DETECT-P95", Right: true, Spare: 2},
		{Title: "HEAL-P95", Right: true, Spare: 1},
		{Title: "HEAL-WORST", Right: true, Spare: 3},
		{Title: "WORST", Spare: 4},
		{Title: "MADE", Right: true},
		{Title: "WANTED", Right: true, Wide: true},
	}}
	for _, g := range doc.Groups {
		most := "-"
		if len(g.Causes) > 0 {
			most = g.Causes[0].Why
		}
		t.Add(g.Name, review.Percent(g.Available), review.Took(g.Lost.D()), most,
			fmt.Sprint(max(g.Heal.Times, g.Detect.Times)),
			tookOrDash(g.Detect, g.Detect.P95), tookOrDash(g.Heal, g.Heal.P95), tookOrDash(g.Heal, g.Heal.Worst),
			cmp.Or(g.Heal.Instance, "-"), fmt.Sprint(g.Total()), review.Took(g.Wanted.D()))
	}
	return t
}

// ReportLine is a line of a report about a group.
type ReportLine struct {
	Text     string
	Instance string // the instance that the line names; "": none
}

// ReportLines returns all lines of a report about a group.
func ReportLines(g review.Group) (lines []ReportLine) {
	add := func(instance, format string, args ...any) {
		lines = append(lines, ReportLine{fmt.Sprintf(format, args...), instance})
	}
	add("", "%s  available %s: %s lost of %s wanted, all slots together", g.Name, review.Percent(g.Available),
		review.Took(g.Lost.D()), review.Took(g.Wanted.D()))
	for _, c := range g.Causes {
		add("", "  lost     %s: %s, %s", c.Why, review.Took(c.Lost.D()), reason.Counted(c.Times, "time", "times"))
	}
	for _, line := range []struct {
		name   string
		spread review.Spread
	}{{"detect", g.Detect}, {"replace", g.Replace}, {"heal", g.Heal}} {
		if line.spread.Times == 0 {
			add("", "  %-8s never", line.name)
			continue
		}
		add(line.spread.Instance, "  %-8s p50 %s, p95 %s, worst %s (%s), %s", line.name,
			review.Took(line.spread.P50.D()), review.Took(line.spread.P95.D()), review.Took(line.spread.Worst.D()),
			line.spread.Instance, reason.Counted(line.spread.Times, "time", "times"))
	}
	var made []string
	for _, m := range g.Made {
		made = append(made, fmt.Sprintf("%d %s", m.Count, m.Why))
	}
	if len(made) == 0 {
		made = []string{"no machine"}
	}
	add("", "  made     %s", strings.Join(made, ", "))
	return lines
}

func tookOrDash(of review.Spread, d store.Duration) string {
	if of.Times == 0 {
		return "-"
	}
	return review.Took(d.D())
}
