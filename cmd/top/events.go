package top

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/coordinator/view"
)

func (m *model) drawEvents(s *screen, at *spot, now time.Time) {
	s.command = "leasehold events"
	wanted := view.Wanted{Instance: at.instance, Text: at.filter, Most: maxRows}
	switch {
	case at.instance != "":
		s.command += " --instance " + at.instance
	case at.group != "":
		s.command += " --group " + at.group
		wanted.Group = at.group
	}
	v := m.views.Events(wanted)
	if !v.Read {
		s.add(line{text: "The journal is being read from etcd …"})
		return
	}
	if len(v.Entries) == 0 {
		s.add(line{text: "  no such entries"})
	}
	s.events(v.Entries, now)
	switch {
	case v.More:
		s.add(line{text: "  there are older ones: / selects by text"})
	case !v.Since.IsZero():
		s.wrapped(line{}, "  ",
			"what is older than "+story.Clock(v.Since, now)+" is not in memory: "+s.command+" --since 30d", s.Dim)
	}
}

// recent lists the last decisions.
func (s *screen) recent(entries []journal.Entry, now time.Time) {
	s.title("decided last")
	if len(entries) == 0 {
		s.add(line{text: "  nothing that is in memory"})
	}
	s.events(entries, now)
}

// events adds a line for each entry.
func (s *screen) events(entries []journal.Entry, now time.Time) {
	for i := range entries {
		e := &entries[i]
		to := place{}
		switch {
		case e.Instance != "":
			to = place{kind: ofInstance, group: e.Group, instance: e.Instance}
		case e.Group != "":
			to = place{kind: ofGroup, group: e.Group}
		}
		about := orDash(e.Instance)
		if e.Instance == "" {
			about = orDash(e.Group)
		} else if e.Claimed {
			about += "?"
		}
		text := "  " + story.Clock(e.At, now) + " " + pad(reason.OneLine(orDash(e.Rule)), 7) + " " +
			reason.OneLine(about) + "  " + reason.OneLine(e.What)
		if why := reason.Text(e.Cause, e.Why); why != "" {
			text += ": " + reason.OneLine(why)
		}
		severity := reason.SeverityOf(&e.JournalEntry)
		s.add(line{text: s.Severe(severity, text), to: to, bad: severity.AtLeast(reason.Warning), name: e.Name})
	}
}

// entry adds an entry of the story of an instance, whole.
func (s *screen) entry(e *journal.Entry, about string, now time.Time) {
	text := reason.OneLine(e.What)
	if e.Instance != about {
		text = e.Instance + ": " + text
	}
	if why := reason.Text(e.Cause, e.Why); why != "" {
		text += ": " + why
	}
	to := place{}
	other := e.Replacement
	if e.Instance != about {
		other = e.Instance
	}
	if other != "" && other != about {
		to = place{kind: ofInstance, group: e.Group, instance: other}
		if e.Replacement == other {
			text += " → " + other
		}
	}
	s.wrapped(line{to: to, name: e.Name}, "  "+story.Clock(e.At, now)+" "+pad(reason.OneLine(orDash(e.Rule)), 7)+" ", text,
		func(part string) string { return s.Severe(reason.SeverityOf(&e.JournalEntry), part) })
}

func pad(text string, width int) string {
	for len([]rune(text)) < width {
		text += " "
	}
	return text
}
