package store

import (
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // time zones exist on every machine
)

// Window is a time that comes again each week or day, in which planned work may begin (ROLL-6).
type Window struct {
	Days     []string `json:"days,omitempty"`      // mon to sun; none: every day
	From     string   `json:"from"`                // on the zone's clock, like 22:00
	For      Duration `json:"for"`                 // of elapsed time, whatever the zone's clock does
	TimeZone string   `json:"time_zone,omitempty"` // like Europe/Berlin; "": UTC
	Allow    []string `json:"allow,omitempty"`     // none: all of PlannedWork, and PlannedDrill
}

// PlannedWork is what waits for a window.
var PlannedWork = []string{PlannedRoll, PlannedExpiry, PlannedRebalance, PlannedScaleDown}

// The kinds of planned work, as Window.Allow names them.
const (
	PlannedRoll      = "roll"
	PlannedExpiry    = "expiry"
	PlannedRebalance = "rebalance" // and moves between spot and on demand
	PlannedScaleDown = "scale_down"
	// PlannedDrill is a drill on a schedule (DAY-6). It waits for no window: without one it is left
	// out.
	PlannedDrill = "drill"
)

// FreezeSpec is a time in which no planned work of a group begins (ROLL-6). Times are as in RFC
// 3339.
type FreezeSpec struct {
	From string `json:"from,omitempty"` // "": it has begun
	To   string `json:"to,omitempty"`
	Why  string `json:"why,omitempty"`
}

// Freeze is a time in which no planned work begins, and why.
type Freeze struct {
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to"`
	Why  string    `json:"why"`
	By   string    `json:"by,omitempty"` // who ordered it; "": the group's file
}

// At reports whether a time is in the freeze.
func (f *Freeze) At(at time.Time) bool { return f != nil && !at.Before(f.From) && at.Before(f.To) }

// Frozen returns the group's freeze; nil if it has none.
func (g *Group) Frozen() *Freeze {
	if g.Freeze == (FreezeSpec{}) {
		return nil
	}
	f := &Freeze{Why: g.Freeze.Why}
	f.From, _ = time.Parse(time.RFC3339, g.Freeze.From)
	f.To, _ = time.Parse(time.RFC3339, g.Freeze.To)
	return f
}

// DefaultForcedGrace is how long an instance past its forced age waits for a window.
const DefaultForcedGrace = Duration(24 * time.Hour)

// Grace returns how long an instance past its forced age waits for a window.
func (e *ExpirySpec) Grace() time.Duration {
	if e.ForcedGrace == nil {
		return DefaultForcedGrace.D()
	}
	return e.ForcedGrace.D()
}

// Opens returns when planned work of a kind may begin as far as windows say: the time itself if one
// is open, or there are none; else the next opening, and zero if no window allows it.
func (g *Group) Opens(kind string, at time.Time) time.Time {
	if len(g.Windows) == 0 {
		return at
	}
	var next time.Time
	for i := range g.Windows {
		w := &g.Windows[i]
		if len(w.Allow) > 0 && !slices.Contains(w.Allow, kind) {
			continue
		}
		if opens := w.opens(at); next.IsZero() || !opens.IsZero() && opens.Before(next) {
			next = opens
		}
	}
	return next
}

// opens returns at if the window is open then, else when it opens next; zero if it never does.
func (w *Window) opens(at time.Time) time.Time {
	loc, err := zoneNamed(w.TimeZone)
	from, wrong := time.Parse(windowTime, w.From)
	if err != nil || wrong != nil || w.For <= 0 {
		return time.Time{} // no valid group has such a window
	}
	length := w.For.D()
	y, m, day := at.In(loc).Date()
	first := -int(length/(24*time.Hour)) - 2
	for n := first; n <= 8; n++ { // a week, and a day that a zone has left out
		wall := time.Date(y, m, day+n, from.Hour(), from.Minute(), 0, 0, time.UTC)
		if !w.on(wall.Weekday()) {
			continue
		}
		switch start := firstAt(wall, loc); {
		case start.After(at):
			return start
		case at.Before(start.Add(length)):
			return at
		}
	}
	return time.Time{}
}

// maxClosings bounds how many freezes and windows in turn are looked at.
const maxClosings = 100

// Begins returns when planned work of a kind may begin: the time itself if a window is open then
// and nothing is frozen; zero if that is not known.
func (g *Group) Begins(kind string, at time.Time, freezes ...*Freeze) time.Time {
	for range maxClosings {
		opens := g.Opens(kind, at)
		if opens.IsZero() {
			return time.Time{} // never, whatever a freeze without a beginning covers
		}
		for _, f := range freezes {
			if f.At(opens) {
				opens = f.To
			}
		}
		if opens.Equal(at) {
			return opens
		}
		at = opens
	}
	return time.Time{}
}

// Period is a time from one moment to another.
type Period struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// OpenBetween returns the times between two moments in which planned work of a kind may begin, in
// order.
func (g *Group) OpenBetween(kind string, from, to time.Time, freezes ...*Freeze) []Period {
	open := []Period{{from, to}}
	if len(g.Windows) > 0 {
		open = nil
		for i := range g.Windows {
			if w := &g.Windows[i]; len(w.Allow) == 0 || slices.Contains(w.Allow, kind) {
				open = append(open, w.between(from, to)...)
			}
		}
		open = joined(open)
	}
	for _, f := range freezes {
		if f != nil {
			open = without(open, f.From, f.To)
		}
	}
	return open
}

// between returns when the window is open between two moments.
func (w *Window) between(from, to time.Time) (open []Period) {
	loc, err := zoneNamed(w.TimeZone)
	clock, wrong := time.Parse(windowTime, w.From)
	if err != nil || wrong != nil || w.For <= 0 {
		return nil // no valid group has such a window
	}
	length := w.For.D()
	y, m, day := from.Add(-length).In(loc).Date()
	for n := -1; ; n++ {
		wall := time.Date(y, m, day+n, clock.Hour(), clock.Minute(), 0, 0, time.UTC)
		if wall.After(to.Add(26 * time.Hour)) { // by any clock
			return open
		}
		if !w.on(wall.Weekday()) {
			continue
		}
		start := firstAt(wall, loc)
		end := start.Add(length)
		if start.Before(to) && end.After(from) {
			open = append(open, Period{Later(start, from), Earlier(end, to)})
		}
	}
}

// joined puts periods in order and joins those that touch.
func joined(all []Period) []Period {
	slices.SortFunc(all, func(a, b Period) int { return a.From.Compare(b.From) })
	var out []Period
	for _, p := range all {
		if n := len(out); n > 0 && !p.From.After(out[n-1].To) {
			out[n-1].To = Later(out[n-1].To, p.To)
			continue
		}
		out = append(out, p)
	}
	return out
}

// without takes the time between two moments out of periods.
func without(all []Period, from, to time.Time) []Period {
	var out []Period
	for _, p := range all {
		if before := (Period{p.From, Earlier(p.To, from)}); before.From.Before(before.To) {
			out = append(out, before)
		}
		if after := (Period{Later(p.From, to), p.To}); after.From.Before(after.To) {
			out = append(out, after)
		}
	}
	return out
}

// on reports whether the window opens on a day of the week.
func (w *Window) on(day time.Weekday) bool {
	return len(w.Days) == 0 || slices.Contains(w.Days, weekdays[day])
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// windowTime is how Window.From is written.
const windowTime = "15:04"

// firstAt returns the first instant at which the clock of a zone shows a time or a later one. A
// time that the clock skips is the moment of the jump; of a time that comes twice it is the first.
// The time is given as if it were in UTC.
func firstAt(wall time.Time, loc *time.Location) time.Time {
	at := wall.Add(-26 * time.Hour).In(loc) // before it, by any clock
	for {
		_, offset := at.Zone()
		_, change := at.ZoneBounds()
		shown := wall.Add(-time.Duration(offset) * time.Second)
		switch {
		case shown.Before(at): // the clock has jumped over it
			return at
		case change.IsZero() || shown.Before(change):
			return shown
		}
		at = change
	}
}

// zones are the time zones that were asked for: reading one takes files.
var zones sync.Map

func zoneNamed(name string) (*time.Location, error) {
	known, _ := zones.Load(name)
	if loc, ok := known.(*time.Location); ok {
		return loc, nil
	}
	if strings.EqualFold(name, "local") {
		return nil, errLocalZone
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, err
	}
	zones.Store(name, loc)
	return loc, nil
}
