package top

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/review"
)

const (
	reportSpan = 7 * 24 * time.Hour
	// reportEvery is the age at which a report is made again: it is computed from the whole journal
	// in memory.
	reportEvery = 10 * time.Second
)

// reported is the last report.
type reported struct {
	group string
	at    time.Time
	doc   review.Report
}

// report returns how well groups were kept; false: nothing was read yet.
func (m *model) report(group string, now time.Time) (review.Report, bool) {
	r := &m.reported
	if since := now.Sub(r.at); r.group == group && since >= 0 && since < reportEvery {
		return r.doc, true
	}
	doc, read := m.views.Report(group, reportSpan, now)
	if read {
		*r = reported{group, now, doc}
	}
	return doc, read
}

// drawReport shows how well groups were kept, or one group in full (DAY-5).
func (m *model) drawReport(s *screen, at *spot, now time.Time) {
	s.command = "leasehold report"
	if at.group != "" {
		s.command += " --group " + at.group
	}
	doc, read := m.report(at.group, now)
	if !read {
		s.unread()
		return
	}
	s.add(line{text: s.Dim("from " + doc.From.UTC().Format("01-02 15:04") + " to " + doc.To.UTC().Format("01-02 15:04") +
		" UTC")})
	s.blank()
	switch {
	case len(doc.Groups) == 0:
		s.add(line{text: "  nothing was wanted in this time"})
	case at.group == "":
		s.reportTable(doc)
	default:
		s.reportLines(doc.Groups[0])
	}
	if len(doc.Unknown) > 0 {
		s.blank()
	}
	for _, text := range doc.Unknown {
		s.wrapped(line{}, "  note: ", text, s.Dim)
	}
}

func (s *screen) reportTable(doc review.Report) {
	var rows []line
	for _, g := range doc.Groups {
		rows = append(rows, line{to: place{kind: ofReport, group: g.Name}, name: "report"})
	}
	t := output.ReportTable(doc)
	if s.Width < 100 { // the page of the group shows the rest
		for i, c := range t.Columns {
			t.Columns[i].Wide = c.Wide || slices.Contains([]string{"WORST", "DETECT-P95", "HEAL-WORST"}, c.Title)
		}
	}
	s.table(t, rows)
}

func (s *screen) reportLines(g review.Group) {
	for _, l := range output.ReportLines(g) {
		one := line{name: l.Text}
		if l.Instance != "" {
			one.to = place{kind: ofInstance, group: g.Name, instance: l.Instance}
		}
		s.wrapped(one, "  ", l.Text, plain)
	}
}
