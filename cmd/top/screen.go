package top

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/view"
)

// line is a line of a screen.
type line struct {
	text string
	to   place // what it leads to
	bad  bool  // the key n stops here
	name string
}

// key identifies a line that can be selected.
func (l *line) key() string {
	if l.to.kind == nowhere {
		return ""
	}
	return fmt.Sprint(l.to, l.name)
}

func selectable(l line) bool { return l.to.kind != nowhere }

// screen is a place as lines.
type screen struct {
	output.Screen
	lines   []line
	command string // prints the same
}

// next returns the next line of a kind in a direction; -1: there is none.
func (s *screen) next(from, by int, wanted func(line) bool) int {
	for i := from + by; i >= 0 && i < len(s.lines); i += by {
		if wanted(s.lines[i]) {
			return i
		}
	}
	return -1
}

func (s *screen) add(l line) { s.lines = append(s.lines, l) }

func (s *screen) blank() { s.add(line{}) }

// title begins a part.
func (s *screen) title(text string) {
	if len(s.lines) > 0 {
		s.blank()
	}
	s.add(line{text: s.Dim(text)})
}

// wrapped adds a text after a prefix, in as many lines as it needs; the first one can be selected.
func (s *screen) wrapped(l line, prefix, text string, style func(string) string) {
	indent := ansi.StringWidth(prefix)
	for i, part := range output.Folded(reason.OneLine(text), max(20, s.Width-indent-1)) {
		if i == 0 {
			l.text = prefix + style(part)
		} else {
			l = line{text: strings.Repeat(" ", indent) + style(part)}
		}
		s.add(l)
	}
}

// table adds rows that can be selected. If rows are wider than the screen, the column that may be
// cut is cut.
func (s *screen) table(t output.Table, rows []line) {
	var b strings.Builder
	on := output.Screen{W: &b, Terminal: true, Width: s.Width - 2}
	_ = t.Write(on, false) // it is written to memory
	for i, text := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
		switch {
		case i == 0:
			s.add(line{text: "  " + s.Dim(text)})
		case i <= len(rows):
			rows[i-1].text = s.styled(rows[i-1].name, "  "+text)
			s.add(rows[i-1])
		}
	}
}

// styled colours a line by the kind of state that it shows.
func (s *screen) styled(kind, text string) string {
	switch kind {
	case "lost", "dead", "unhealthy":
		return s.Alarm(text)
	case "suspect", "doomed", "starting", "leaving":
		return s.Notice(text)
	case "finished", "vacant":
		return s.Dim(text)
	default:
		return text
	}
}

func plain(text string) string { return text }

// text puts head, lines and foot together.
func (m *model) text() string {
	at := m.at()
	out := make([]string, 0, m.height)
	out = append(out, m.fit(m.head()), m.fit(m.trail()))
	for i := range m.room() {
		n := at.top + i
		if n >= len(m.screen.lines) {
			out = append(out, "")
			continue
		}
		text := m.screen.lines[n].text
		if n == at.chosen && at.key != "" {
			text = "\x1b[7m>" + strings.TrimPrefix(ansi.Strip(text), " ") + "\x1b[0m"
		}
		out = append(out, m.fit(text))
	}
	return strings.Join(append(out, m.fit(m.foot())), "\n")
}

// fit cuts a line to the screen's width.
func (m *model) fit(text string) string { return ansi.Truncate(text, m.width, "…") }

// head says how reliable the screen is.
func (m *model) head() string {
	now, s := m.cfg.Now(), m.screen
	t := m.views.Truth(now)
	age := func() string { return output.Age(now, t.Heard) + " ago" }
	switch {
	case t.Heard.IsZero():
		return t.Shard + "  " + s.Notice("etcd has not answered yet")
	case t.Stale:
		return t.Shard + "  " + s.Alarm("STALE: heard from etcd "+age()+"; trying again")
	}
	parts := []string{t.Shard}
	if t.Leader == "" {
		parts = append(parts, s.Alarm("no leader"))
	} else {
		parts = append(parts, "leader "+reason.OneLine(t.Leader)+" "+output.Age(now, t.Since))
	}
	return strings.Join(append(parts, fmt.Sprintf("rev %d", m.f.revision()), s.Dim("heard "+age())), "  ")
}

// trail is the path to the open place.
func (m *model) trail() string {
	var names []string
	for _, o := range m.open {
		names = append(names, o.title())
	}
	text := strings.Join(names, " › ")
	at := m.at()
	if m.typing {
		return text + "  /" + at.filter + "█"
	}
	if at.filter != "" {
		return text + "  /" + at.filter
	}
	return text
}

func (p place) title() string {
	switch p.kind {
	case ofGroup:
		return reason.OneLine(p.group)
	case ofInstance:
		return reason.OneLine(p.instance)
	case ofEvents:
		return "events"
	case ofReport:
		return "report"
	case ofHelp:
		return "keys"
	default:
		return "shard"
	}
}

func (m *model) foot() string {
	keys := "↑↓ Enter Esc  n problem  e events  r report  / filter  ? keys  q quit"
	if m.typing {
		keys = "Enter keeps the filter, Esc removes it"
	}
	left := len(m.screen.lines) - m.at().top - m.room()
	if left > 0 {
		keys = fmt.Sprintf("↓ %d  %s", left, keys)
	}
	if c := m.screen.command; c != "" && m.width-ansi.StringWidth(keys)-ansi.StringWidth(c) > 4 {
		keys += "  │ " + c
	}
	return m.screen.Dim(keys)
}

// printable returns the part of a text that can be printed.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, text)
}

// draw makes the lines of a place.
func (m *model) draw(at *spot) screen {
	s := screen{Screen: output.Screen{Terminal: true, Colour: m.cfg.Colour, Width: m.width}}
	now := m.cfg.Now()
	switch at.kind {
	case ofGroup:
		m.drawGroup(&s, at, now)
	case ofInstance:
		m.drawInstance(&s, at, now)
	case ofEvents:
		m.drawEvents(&s, at, now)
	case ofReport:
		m.drawReport(&s, at, now)
	case ofHelp:
		drawHelp(&s)
	default:
		m.drawShard(&s, at, now)
	}
	return s
}

func (s *screen) unread() { s.add(line{text: "The shard is being read from etcd …"}) }

func sign(kind string) string { return view.Glyphs[kind] }
