package review

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

// slot is one place of a group, as the journal goes on.
type slot struct {
	wanted  bool
	since   time.Time       // counts since; of a new slot it may be in the future
	serving map[string]bool // instances
	empty   time.Time       // no instance has served since; zero: one does
	why     string
	failure *failure
}

// failure is a failure in a slot that is not repaired yet.
type failure struct {
	instance string
	begun    time.Time // first evidence
	seen     time.Time // the verdict
	replaced bool
	drill    bool
}

// group is what is summed up for a group.
type group struct {
	name                  string
	from, to              time.Time
	slots                 map[int]*slot
	wanted, lost          time.Duration
	atFirst               int // slots that were wanted when the span began
	causes                map[string]*Cause
	made                  map[string]int
	detect, replace, heal []sample
}

func (g *group) slot(n int) *slot {
	s := g.slots[n]
	if s == nil {
		s = &slot{serving: map[string]bool{}}
		g.slots[n] = s
	}
	return s
}

// maxStart is how long the first instance of a slot may take to start, uncounted. A machine that
// starts is growth under way, and no outage; one that is never made is.
const maxStart = 10 * time.Minute

// want begins a slot, which is empty at first. A slot that a larger group has added counts when it
// is first served, when its first instance fails, or after maxStart.
func (g *group) want(n int, at time.Time, why string) {
	s := g.slot(n)
	if !s.wanted {
		from := at
		if why == Growth {
			from = at.Add(maxStart)
		}
		s.wanted, s.since, s.empty, s.why = true, from, from, why
		if !at.After(g.from) {
			g.atFirst++
		}
	}
}

// count counts a slot from a time on, if it does not count yet.
func (g *group) count(n int, at time.Time) {
	if s := g.slot(n); s.wanted && at.Before(s.since) {
		s.since, s.empty = at, at
	}
}

// serve records that an instance serves in the slot from now on.
func (g *group) serve(n int, id string, at time.Time) {
	g.want(n, at, Earlier)
	g.count(n, at)
	s := g.slot(n)
	s.serving[id] = true
	if !s.empty.IsZero() {
		g.lose(s, at)
		s.empty = time.Time{}
	}
	if f := s.failure; f != nil {
		if g.within(at) && !f.drill {
			g.heal = append(g.heal, sample{at.Sub(f.begun), f.instance})
		}
		s.failure = nil
	}
}

// leave records that an instance no longer serves, since a time that may be slightly in the past.
func (g *group) leave(n int, id string, at time.Time, why string) {
	s := g.slot(n)
	if !s.serving[id] {
		return
	}
	if delete(s.serving, id); len(s.serving) == 0 && s.wanted {
		s.empty, s.why = at, why
	}
}

// unwant ends a slot, unless an instance still serves in it.
func (g *group) unwant(n int, at time.Time) {
	s := g.slot(n)
	if !s.wanted || len(s.serving) > 0 {
		return
	}
	// It was wanted until its last instance left; the time since then was not lost.
	g.wanted += g.clip(s.since, s.empty)
	if !at.After(g.from) {
		g.atFirst--
	}
	s.wanted, s.empty, s.failure = false, time.Time{}, nil
}

// lose counts the time in which the slot was empty.
func (g *group) lose(s *slot, until time.Time) {
	took := g.clip(s.empty, until)
	if took <= 0 {
		return
	}
	g.lost += took
	c := g.causes[s.why]
	if c == nil {
		c = &Cause{Why: s.why}
		g.causes[s.why] = c
	}
	c.Lost += store.Duration(took)
	c.Times++
}

func (g *group) within(at time.Time) bool { return !at.Before(g.from) && !at.After(g.to) }

// clip returns the part of a time that is in the span.
func (g *group) clip(from, to time.Time) time.Duration {
	if from.Before(g.from) {
		from = g.from
	}
	if to.After(g.to) {
		to = g.to
	}
	return max(0, to.Sub(from))
}
