package top

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/leasehold/leasehold/coordinator/view"
)

// refreshEvery is the shortest time between two changes of the screen.
const refreshEvery = 250 * time.Millisecond

type kind int

// The kinds of places.
const (
	nowhere kind = iota
	ofShard
	ofGroup
	ofInstance
	ofEvents
	ofReport
	ofHelp
)

// place is what a screen shows.
type place struct {
	kind     kind
	group    string
	instance string
}

// spot is an open place, with the selection in it.
type spot struct {
	place
	filter string
	chosen int    // the line with the cursor
	key    string // the key of that line: lines come and go above it
	top    int    // the first visible line
}

// model is the state of the program.
type model struct {
	cfg    Config
	f      *follower
	views  *view.Source
	width  int
	height int
	open   []spot // the last one is visible
	typing bool   // the keys go to the filter
	screen screen // as derived last

	reported reported
}

type (
	changed struct{}  // something has changed
	paused  struct{}  // the next change may be shown
	tick    time.Time // ages count on
)

func newModel(cfg Config, f *follower) *model {
	m := &model{cfg: cfg, f: f, views: f.views, width: 80, height: 24, open: []spot{{place: place{kind: ofShard}}}}
	m.derive()
	return m
}

// Init implements tea.Model, as Update and View do.
func (m *model) Init() tea.Cmd { return tea.Batch(m.await(), everySecond()) }

// await waits for the next change.
func (m *model) await() tea.Cmd {
	return func() tea.Msg {
		select {
		case <-m.f.dirty:
			return changed{}
		case <-m.f.done:
			return nil
		}
	}
}

func everySecond() tea.Cmd {
	return tea.Tick(time.Second, func(t time.Time) tea.Msg { return tick(t) })
}

// Update handles a message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.derive()
	case tea.KeyPressMsg:
		return m, m.press(msg)
	case tea.PasteMsg:
		if m.typing {
			m.at().filter += printable(msg.Content)
			m.derive()
		}
	case changed:
		m.derive()
		return m, tea.Tick(refreshEvery, func(time.Time) tea.Msg { return paused{} })
	case paused:
		return m, m.await()
	case tick:
		m.derive()
		return m, everySecond()
	}
	return m, nil
}

// View is the screen as text.
func (m *model) View() tea.View {
	v := tea.NewView(m.text())
	v.AltScreen = true
	v.WindowTitle = "leasehold " + m.cfg.Shard
	return v
}

func (m *model) at() *spot { return &m.open[len(m.open)-1] }

func (m *model) press(key tea.KeyPressMsg) tea.Cmd {
	name := key.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	if m.typing {
		m.edit(key)
		return nil
	}
	at := m.at()
	switch name {
	case "q":
		return tea.Quit
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup", "ctrl+b":
		m.scroll(-m.room())
	case "pgdown", "ctrl+f", "space", " ":
		m.scroll(m.room())
	case "home", "g":
		m.choose(m.screen.next(-1, 1, selectable))
		at.top = 0
	case "end", "G":
		m.choose(m.screen.next(len(m.screen.lines), -1, selectable))
	case "n":
		m.nextProblem()
	case "enter", "right", "l":
		if i := at.chosen; i >= 0 && i < len(m.screen.lines) && m.screen.lines[i].to.kind != nowhere {
			m.enter(m.screen.lines[i].to)
		}
	case "esc":
		if at.filter != "" {
			at.filter = ""
			m.derive()
			return nil
		}
		m.leave()
	case "left", "h", "backspace":
		m.leave()
	case "e":
		if at.kind != ofEvents && at.kind != ofHelp {
			m.enter(place{kind: ofEvents, group: at.group, instance: at.instance})
		}
	case "r":
		if at.kind != ofReport && at.kind != ofHelp {
			m.enter(place{kind: ofReport, group: at.group})
		}
	case "?":
		if at.kind != ofHelp {
			m.enter(place{kind: ofHelp})
		}
	case "/":
		m.typing = at.kind != ofInstance && at.kind != ofReport && at.kind != ofHelp
	}
	return nil
}

// edit changes the filter.
func (m *model) edit(key tea.KeyPressMsg) {
	at := m.at()
	switch key.String() {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, at.filter = false, ""
	case "backspace":
		if text := []rune(at.filter); len(text) > 0 {
			at.filter = string(text[:len(text)-1])
		}
	case "ctrl+u":
		at.filter = ""
	default:
		at.filter += printable(key.Text)
	}
	m.derive()
}

func (m *model) enter(to place) {
	m.open = append(m.open, spot{place: to})
	m.derive()
}

func (m *model) leave() {
	if len(m.open) > 1 {
		m.open = m.open[:len(m.open)-1]
	}
	m.derive()
}

// derive makes the lines of the open place. The cursor stays on the same item.
func (m *model) derive() {
	at := m.at()
	m.screen = m.draw(at)
	if i := slices.IndexFunc(m.screen.lines, func(l line) bool { return at.key != "" && l.key() == at.key }); i >= 0 {
		m.choose(i)
		return
	}
	i := m.screen.next(min(at.chosen, len(m.screen.lines))-1, 1, selectable)
	if i < 0 {
		i = m.screen.next(len(m.screen.lines), -1, selectable)
	}
	first := at.key == ""
	m.choose(i)
	if first {
		at.top = 0 // a new place is read from its beginning
	}
}

// choose puts the cursor on a line and scrolls it into view; -1: nothing can be selected.
func (m *model) choose(i int) {
	at := m.at()
	if i < 0 {
		at.chosen, at.key = 0, ""
		at.top = max(0, min(at.top, len(m.screen.lines)-m.room()))
		return
	}
	at.chosen, at.key = i, m.screen.lines[i].key()
	at.top = max(min(at.top, i), i-m.room()+1)
	at.top = max(0, min(at.top, len(m.screen.lines)-m.room()))
}

// move moves the cursor by one; if there is nothing more to select, it scrolls.
func (m *model) move(by int) {
	at := m.at()
	i := m.screen.next(at.chosen, by, selectable)
	far := i >= 0 && (i < at.top-1 || i > at.top+m.room())
	if at.key == "" || i < 0 || far {
		m.slide(by)
		return
	}
	m.choose(i)
}

// slide scrolls by some lines, without the cursor.
func (m *model) slide(by int) {
	at := m.at()
	at.top = max(0, min(at.top+by, len(m.screen.lines)-m.room()))
}

// scroll scrolls, and moves the cursor along.
func (m *model) scroll(by int) {
	at := m.at()
	m.slide(by)
	if i := m.screen.next(at.top-1, 1, selectable); i >= 0 && i < at.top+m.room() {
		at.chosen, at.key = i, m.screen.lines[i].key()
	}
}

func (m *model) nextProblem() {
	bad := func(l line) bool { return l.bad && selectable(l) }
	i := m.screen.next(m.at().chosen, 1, bad)
	if i < 0 {
		i = m.screen.next(-1, 1, bad)
	}
	if i >= 0 {
		m.choose(i)
	}
}

// room is the number of lines between head and foot.
func (m *model) room() int { return max(1, m.height-3) }
