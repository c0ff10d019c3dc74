package review

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

// past is what happened to a group in a span, as a replay needs it.
type past struct {
	size     int // in force when the span began; 0: not known
	sizes    []sized
	rolls    []time.Time
	template string
	failures []Failure
	starts   []sample
	calls    []sample
	unready  int
}

type sized struct {
	at   time.Time
	size int
}

// Failure is something that happened to the instance of a slot.
type Failure struct {
	At   time.Time
	Kind store.FailureKind
	Slot int
	For  time.Duration // 0: until the coordinator repaired it
}

// life is what the journal has said of an instance.
type life struct {
	phase     store.Phase // "": it ran when the entries began
	requested time.Time
	made      time.Time
	suspect   time.Time
	ready     bool // it was healthy once
	noticed   bool
	failure   int // its last failure, from 1, while it lasts
}

// pasts follows the journal.
type pasts struct {
	from, to time.Time
	groups   map[string]*past
	lives    map[string]*life
	more     int
}

// pastsOf computes what happened between two times. Entries after the second one say how long it
// lasted.
func pastsOf(entries []store.JournalEntry, from, to time.Time) *pasts {
	p := &pasts{from: from, to: to, groups: map[string]*past{}, lives: map[string]*life{}}
	for i := range entries {
		e := &entries[i]
		switch {
		case concerns(e):
			p.instance(e)
		case e.Group != "":
			p.spec(e)
		case e.Instance == "" && e.Rule == "DET-3" && p.within(e.At):
			p.more++
		}
	}
	return p
}

func (p *pasts) within(at time.Time) bool { return !at.Before(p.from) && at.Before(p.to) }

func (p *pasts) group(name string) *past {
	g := p.groups[name]
	if g == nil {
		g = &past{}
		p.groups[name] = g
	}
	return g
}

// SizeOf returns the size that comes into force by an entry; false if none does.
func SizeOf(e *store.JournalEntry) (int, bool) {
	switch e.Cause.Kind {
	case store.CauseSpec:
		return e.Cause.Count, true
	case store.CauseLoad:
		return e.Cause.Limit, e.Cause.Name != string(store.ScaleAdvised)
	case store.CauseScheduled:
		return e.Cause.Limit, true
	default:
		return 0, false
	}
}

// spec follows size and template.
func (p *pasts) spec(e *store.JournalEntry) {
	size, ok := SizeOf(e)
	if !ok {
		return
	}
	g := p.group(e.Group)
	if e.Cause.Kind == store.CauseSpec {
		if g.template != "" && g.template != e.Cause.Name && p.within(e.At) {
			g.rolls = append(g.rolls, e.At)
		}
		g.template = e.Cause.Name
	}
	switch {
	case e.At.Before(p.from):
		g.size = size
	case p.within(e.At):
		if g.size == 0 && len(g.sizes) == 0 && e.Cause.Kind != store.CauseSpec {
			g.size = e.Cause.Count
		}
		g.sizes = append(g.sizes, sized{e.At, size})
	}
}

func (p *pasts) life(id string) *life {
	l := p.lives[id]
	if l == nil {
		l = &life{}
		p.lives[id] = l
	}
	return l
}

// starting reports whether it has not served yet.
func (l *life) starting() bool {
	switch l.phase {
	case store.Pending, store.Creating, store.Booting, store.Checking:
		return !l.ready
	default:
		return false
	}
}

// instance follows an instance.
func (p *pasts) instance(e *store.JournalEntry) {
	g, l := p.group(e.Group), p.life(e.Instance)
	if e.Replacement != "" {
		heir := p.life(e.Replacement)
		heir.requested, heir.phase = e.At, store.Pending
	}
	if l.phase == "" && e.From != "" {
		l.phase = e.From
	}
	switch {
	case e.Kind == store.EntryVerdict:
		p.verdict(g, l, e)
	case e.Cause.Kind == store.CauseNotice && !l.noticed && !l.starting():
		l.noticed = true
		p.fail(g, l, e, store.FailedNotice, e.At)
		l.failure = 0
	}
	switch e.To {
	case store.Pending:
		l.requested = e.At
	case store.Booting:
		l.made = e.At
		if !l.requested.IsZero() && p.within(e.At) {
			g.calls = append(g.calls, sample{e.At.Sub(l.requested), e.Instance})
		}
	case store.Running:
		if !l.made.IsZero() && !l.ready && p.within(e.At) {
			g.starts = append(g.starts, sample{e.At.Sub(l.made), e.Instance})
		}
		l.ready, l.failure, l.suspect = true, 0, time.Time{}
	case store.Deleting, store.Draining:
		if l.starting() && (whyOf(e) == NotHealthy || whyOf(e) == Died) && p.within(e.At) {
			g.unready++
		}
	default:
	}
	if e.From == store.Running && e.To != store.Running && e.To != "" && l.failure == 0 && !l.noticed {
		// The journal has only the number of such verdicts.
		if kind := failureOf(e.Verdict); kind != "" {
			p.fail(g, l, e, kind, e.At)
		}
	}
	if e.To != "" {
		l.phase = e.To
	}
}

func failureOf(v store.Verdict) store.FailureKind {
	switch v {
	case store.Dead:
		return store.FailedDead
	case store.Lost:
		return store.FailedLost
	case store.Unhealthy:
		return store.FailedChecks
	default:
		return ""
	}
}

// verdict follows what an instance was judged to be.
func (p *pasts) verdict(g *past, l *life, e *store.JournalEntry) {
	if l.starting() {
		return
	}
	switch e.Verdict {
	case store.Suspect:
		if l.suspect.IsZero() {
			l.suspect = e.At
		}
	case store.Dead, store.Lost, store.Unhealthy:
		at := e.At
		if e.Verdict != store.Unhealthy && !l.suspect.IsZero() {
			at = l.suspect
		}
		if n := l.failure - 1; n >= 0 && e.Verdict != store.Unhealthy {
			if n < len(g.failures) {
				g.failures[n].Kind = failureOf(e.Verdict) // it became worse
			}
			return
		}
		if l.failure == 0 && !l.noticed {
			p.fail(g, l, e, failureOf(e.Verdict), at)
		}
	case store.Live:
		switch n := l.failure - 1; {
		case n >= 0 && n < len(g.failures):
			g.failures[n].For = e.At.Sub(g.failures[n].At)
		case n < 0 && !l.suspect.IsZero() && p.within(l.suspect):
			g.failures = append(g.failures, Failure{
				At: l.suspect, Kind: store.FailedSilent, Slot: *e.Slot, For: e.At.Sub(l.suspect),
			})
		}
		l.failure, l.suspect = 0, time.Time{}
	default:
	}
}

// outside is the number of a failure that did not begin in the span.
const outside = 1 << 40

// fail records a failure.
func (p *pasts) fail(g *past, l *life, e *store.JournalEntry, kind store.FailureKind, at time.Time) {
	if !p.within(at) {
		l.failure = outside
		return
	}
	g.failures = append(g.failures, Failure{At: at, Kind: kind, Slot: *e.Slot})
	l.failure = len(g.failures)
}
