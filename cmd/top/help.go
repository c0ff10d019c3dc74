package top

import "github.com/leasehold/leasehold/coordinator/view"

var keysOfHelp = [][2]string{
	{"↑ ↓  k j", "choose; where nothing more can be chosen, the text moves"},
	{"PgUp PgDn Space", "a screen up or down"},
	{"Home End  g G", "the first, the last"},
	{"Enter  → l", "open what is chosen: a group, an instance, what an entry is about"},
	{"Esc  ← h", "back; Esc removes a filter first"},
	{"n", "the next problem, or the next instance that is sick"},
	{"e", "the events of what is open"},
	{"r", "the report of the last seven days, as far as the journal in memory reaches: of all groups, or the open one"},
	{"/", "a filter: groups by name; instances by ID, state, zone, phase; events by text"},
	{"q  Ctrl-C", "leave"},
}

func drawHelp(s *screen) {
	for _, k := range keysOfHelp {
		s.wrapped(line{}, "  "+pad(k[0], 17), k[1], plain)
	}
	s.title("signs")
	for _, kind := range view.Kinds {
		s.wrapped(line{}, "  "+s.styled(kind, sign(kind)+" "+pad(kind, 10)), view.Meanings[kind], plain)
	}
}
