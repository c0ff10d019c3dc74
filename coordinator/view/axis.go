package view

import (
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/store"
)

// laneOfOperators has what operators have done: orders and accepted specs, whatever their rules.
const laneOfOperators = "operator"

// lanes are the rows of the time axis, by the rules of their decisions.
var lanes = []struct {
	Name     string
	Families []string
}{
	{"detect", []string{"DET", "SAFE"}},
	{"heal", []string{"HEAL", "FLAP", "REC"}},
	{"roll", []string{"ROLL", "EXP"}},
	{"scale", []string{"AUTO", "BUSY", "CAP"}},
	{"drain", []string{"DRAIN", "SPOT"}},
	{"traffic", []string{"LB"}},
	{laneOfOperators, []string{"DAY"}},
	{"other", nil},
}

// Spans are how far back a time axis may reach.
var Spans = []struct {
	Name string
	For  time.Duration
}{
	{"15m", 15 * time.Minute},
	{"1h", time.Hour},
	{"6h", 6 * time.Hour},
	{"24h", 24 * time.Hour},
	{"7d", 7 * 24 * time.Hour},
}

// Axis shows a group's decisions over time, and what was going on.
type Axis struct {
	From, To time.Time
	Step     time.Duration // width of a column
	Lanes    []Lane
	Bands    []Band
}

// Lane counts decisions of a kind, by column.
type Lane struct {
	Name   string
	Counts []int
}

// Band is the time span of a storm, a grace, a roll, an open breaker, a hold, a freeze or an open
// window. Windows and freezes are the present ones.
type Band struct {
	Name    string
	Periods []store.Period
}

// Axis counts a group's decisions in columns, and finds the bands.
func (s *Source) Axis(group string, span time.Duration, columns int, now time.Time) Axis {
	step := span / time.Duration(columns)
	to := now.Truncate(step).Add(step) // moves with its columns, not with every second
	a := Axis{From: to.Add(-span), To: to, Step: step}
	for _, l := range lanes {
		a.Lanes = append(a.Lanes, Lane{l.Name, make([]int, columns)})
	}
	on, graceOf := goings{}, ""
	s.journal.View(func(entries []journal.Entry, _ time.Time) {
		for i := range entries {
			e := &entries[i]
			if e.Cause.Kind == store.CauseDisturbed {
				on.grace(e, graceOf)
				graceOf = e.By
			}
			if e.Group != group {
				continue
			}
			on.see(e)
			if !e.At.Before(a.From) && e.At.Before(a.To) {
				a.Lanes[laneOf(e)].Counts[int(e.At.Sub(a.From)/step)]++
			}
		}
	})
	s.cache.View(func(c *cache.Content) { on.present(c, group, a.From, now) })
	for _, name := range bandNames {
		var periods []store.Period
		for _, p := range on[name] {
			if p.To.IsZero() || p.To.After(now) { // it goes on: it ends with the axis, which does not move every second
				p.To = a.To
			}
			if p.From.Before(a.From) {
				p.From = a.From
			}
			if p.From.Before(p.To) {
				periods = append(periods, p)
			}
		}
		if len(periods) > 0 {
			a.Bands = append(a.Bands, Band{name, periods})
		}
	}
	return a
}

// laneOf returns the lane of an entry. Of what follows from an order, only what names the operator
// is the operator's.
func laneOf(e *journal.Entry) int {
	family, _, _ := strings.Cut(e.Rule, "-")
	ordered := e.Cause.Kind == store.CauseOrder || e.Cause.Kind == store.CauseSpec
	for i, l := range lanes {
		if ordered && l.Name == laneOfOperators || !ordered && slices.Contains(l.Families, family) {
			return i
		}
	}
	return len(lanes) - 1
}

// The names of bands, in display order.
const (
	bandStorm   = "storm"
	bandGrace   = "grace"
	bandRoll    = "rolling"
	bandBreaker = "breaker"
	bandHold    = "hold"
	bandFreeze  = "freeze"
	bandWindow  = "window"
)

var bandNames = []string{bandStorm, bandGrace, bandRoll, bandBreaker, bandHold, bandFreeze, bandWindow}

// goings are the bands found so far, by name; an ongoing one has a zero end.
type goings map[string][]store.Period

func (g goings) begin(name string, at time.Time) {
	if n := len(g[name]); n > 0 && g[name][n-1].To.IsZero() {
		return
	}
	g[name] = append(g[name], store.Period{From: at})
}

// end ends a band; one that began before the journal in memory has no beginning.
func (g goings) end(name string, at time.Time) {
	n := len(g[name])
	if n == 0 || !g[name][n-1].To.IsZero() {
		g[name] = append(g[name], store.Period{})
		n++
	}
	g[name][n-1].To = at
}

// grace takes note of a time in which no instance is judged lost. It lengthens one that goes on; a
// new leader has one of its own, which ends when it says, whatever the leader before had said.
func (g goings) grace(e *journal.Entry, from string) {
	p := store.Period{From: e.At, To: e.At.Add(e.Cause.For.D())}
	if n := len(g[bandGrace]); n > 0 && !g[bandGrace][n-1].To.Before(p.From) {
		last := &g[bandGrace][n-1]
		if p.To.After(last.To) || from != e.By {
			last.To = p.To
		}
		return
	}
	g[bandGrace] = append(g[bandGrace], p)
}

// see records a journal entry that begins or ends a band.
func (g goings) see(e *journal.Entry) {
	switch e.Cause.Kind {
	case store.CauseManyLost, store.CauseManyLostInShard:
		if e.Rule == "SAFE-2" {
			g.begin(bandStorm, e.At)
		}
	case store.CauseFewLost, store.CauseOverridden:
		if e.Rule == "SAFE-2" {
			g.end(bandStorm, e.At)
		}
	case store.CauseSomeOutdated:
		g.begin(bandRoll, e.At)
	case store.CauseNoneOutdated, store.CauseUpdated:
		g.end(bandRoll, e.At)
	case store.CauseManyFail:
		if e.Rule != "ROLL-7" {
			return
		}
		if e.Cause.Count > e.Cause.Limit {
			g.begin(bandBreaker, e.At)
		} else {
			g.end(bandBreaker, e.At)
		}
	default: // it begins and ends nothing
	}
}

// present sets the ongoing bands from the records: the journal in memory may begin later, and a
// band that it began may be over.
func (g goings) present(c *cache.Content, group string, from, now time.Time) {
	st := c.Status[group].Record
	goesOn := func(name string, since time.Time) { // zero: it does not go on
		n := len(g[name])
		open := n > 0 && g[name][n-1].To.IsZero()
		switch on := !since.IsZero(); {
		case on && !open:
			g[name] = append(g[name], store.Period{From: since})
		case !on && open: // its end was not recorded, or not read yet
			g[name] = g[name][:n-1]
		}
	}
	var storm, roll, breaker time.Time
	if st.Storm != nil && st.Storm.Ended == "" {
		storm = st.Storm.Since
	}
	if st.Rollout != nil {
		roll = st.Rollout.Since
	}
	if st.Breaker != nil {
		breaker = st.Breaker.Since
	}
	goesOn(bandStorm, storm)
	goesOn(bandRoll, roll)
	goesOn(bandBreaker, breaker)
	if h := c.Shard.Record.Hold; h != nil {
		goesOn(bandHold, h.At)
	}
	if st.Accepted == nil {
		return
	}
	for _, f := range []*store.Freeze{c.Shard.Record.Freeze, st.Accepted.Frozen()} {
		if f != nil && f.From.Before(now) {
			g[bandFreeze] = append(g[bandFreeze], store.Period{From: f.From, To: f.To})
		}
	}
	if len(st.Accepted.Windows) == 0 {
		return
	}
	for _, work := range store.PlannedWork {
		for _, p := range st.Accepted.OpenBetween(work, from, now) {
			if !slices.Contains(g[bandWindow], p) {
				g[bandWindow] = append(g[bandWindow], p)
			}
		}
	}
}
