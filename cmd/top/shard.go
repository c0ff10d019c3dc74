package top

import (
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/coordinator/view"
)

// maxRows is the largest number of rows of a table: the worst come first, and a filter finds the
// others.
const maxRows = 300

func (m *model) drawShard(s *screen, at *spot, now time.Time) {
	s.command = "leasehold status"
	v, read := m.views.Shard(now)
	if !read {
		s.unread()
		return
	}
	if v.Hold != nil {
		s.wrapped(line{}, "", "ON HOLD: nothing is created or deleted. "+v.Hold.Why+" (by "+v.Hold.By+")", s.Alarm)
	}
	groups := map[string]bool{}
	for _, row := range v.Rows {
		groups[row.Name] = true
	}
	if len(v.Problems) == 0 {
		s.add(line{text: s.Good("no problem")})
	} else {
		s.add(line{text: s.Alarm(reason.Counted(len(v.Problems), "problem", "problems"))})
	}
	for _, p := range v.Problems {
		to := place{kind: ofEvents}
		if groups[p.About] {
			to = place{kind: ofGroup, group: p.About}
		}
		s.problem(p, to)
	}
	s.title("groups")
	t := output.Table{Columns: output.GroupColumns()}
	var rows []line
	for _, row := range v.Rows {
		if at.filter != "" && !strings.Contains(row.Name, at.filter) {
			continue
		}
		t.Add(output.GroupCells(row.Name, row.Row, now)...)
		l := line{to: place{kind: ofGroup, group: row.Name}, bad: row.Mark == "!", name: "row"}
		rows = append(rows, l)
	}
	switch {
	case len(v.Rows) == 0:
		s.add(line{text: "  none; leasehold group apply -f FILE creates one"})
	case len(rows) == 0:
		s.add(line{text: "  none that /" + at.filter + " finds"})
	default:
		s.marked(t, rows)
	}
	s.recent(m.views.Events(view.Wanted{Most: 20}).Entries, now)
}

// marked adds a table whose first column is the mark of a row.
func (s *screen) marked(t output.Table, rows []line) {
	for i := range rows {
		switch t.Rows[i][0] {
		case "!":
			rows[i].name += "!"
		case "~":
			rows[i].name += "~"
		}
	}
	from := len(s.lines)
	s.table(t, rows)
	for i := range rows {
		l := &s.lines[from+1+i]
		switch {
		case strings.HasSuffix(l.name, "!"):
			l.text = s.Alarm(l.text)
		case strings.HasSuffix(l.name, "~"):
			l.text = s.Notice(l.text)
		}
		l.name = "row"
	}
}

// problem shows a problem and what to do about it.
func (s *screen) problem(p story.Problem, to place) {
	about := "! " + reason.OneLine(p.About) + "  "
	if p.Rule != "" {
		about += p.Rule + " "
	}
	s.wrapped(line{to: to, bad: true, name: p.Rule + p.What}, about, p.What, plain)
	if len(p.Remedies) > 0 {
		s.wrapped(line{}, "    next: ", p.Remedies.String(), s.Dim)
	}
}
