package review

import (
	"cmp"
	"time"

	"github.com/leasehold/leasehold/store"
)

// walk goes through the journal.
type walk struct {
	from, to  time.Time
	groups    map[string]*group
	instances map[string]*instance
	more      int // further verdicts in summed-up entries
}

// instance is what the journal has said of an instance so far.
type instance struct {
	slot    int
	serves  bool
	suspect time.Time // since then; zero: it is not
	failed  bool      // judged dead, lost or failing, and served until then
	drill   time.Time // what happens to it is a part of the drill of then; zero: of none
}

// drilled reports whether what happens to the instance is a part of a drill.
func (m *instance) drilled() bool { return !m.drill.IsZero() }

func (p *walk) group(name string) *group {
	g := p.groups[name]
	if g == nil {
		g = &group{
			name: name, from: p.from, to: p.to, slots: map[int]*slot{}, causes: map[string]*Cause{},
			made: map[string]int{},
		}
		p.groups[name] = g
	}
	return g
}

// begin finds out which instances served when the entries begin: those that the journal first
// mentions as running, and those that have run since before.
func (p *walk) begin(entries []store.JournalEntry, records []store.Instance) {
	p.instances = map[string]*instance{}
	start := p.from
	if len(entries) > 0 && entries[0].At.Before(start) {
		start = entries[0].At
	}
	known := map[string]bool{}
	serves := func(id, group string, slot int, since time.Time) {
		p.instances[id] = &instance{slot: slot, serves: true}
		p.group(group).serve(slot, id, since)
	}
	created := map[string]time.Time{}
	for _, rec := range records {
		created[rec.ID] = rec.Created
	}
	since := func(id string) time.Time {
		if at := created[id]; at.After(start) {
			return at
		}
		return start
	}
	for i := range entries {
		e := &entries[i]
		if e.Replacement != "" {
			known[e.Replacement] = true
		}
		if !saysState(e) || known[e.Instance] {
			continue
		}
		known[e.Instance] = true
		if e.From == store.Running || e.To == "" {
			serves(e.Instance, e.Group, *e.Slot, since(e.Instance))
		}
	}
	for _, rec := range records {
		if rec.Managed && !known[rec.ID] && rec.Phase == store.Running {
			serves(rec.ID, rec.Group, rec.Slot, since(rec.ID))
		}
	}
}

// concerns reports whether an entry records a change of an instance in a slot.
func concerns(e *store.JournalEntry) bool {
	return e.Group != "" && e.Instance != "" && e.Slot != nil && !e.Claimed
}

// take applies one entry.
func (p *walk) take(e *store.JournalEntry) {
	if e.At.After(p.to) {
		return
	}
	if e.Instance == "" && e.Group == "" && e.Rule == "DET-3" {
		p.more++
	}
	if !concerns(e) {
		return
	}
	g, n := p.group(e.Group), *e.Slot
	m := p.instances[e.Instance]
	if m == nil {
		m = &instance{slot: n}
		p.instances[e.Instance] = m
	}
	switch {
	case e.Rule == RuleDrill:
		m.drill = e.At
	case m.serves && !e.At.Before(m.drill.Add(store.DrillTime)):
		m.drill = time.Time{} // it has recovered; a later failure is not the drill's
	}
	why := whyOf(e)
	if m.drilled() {
		why = Drill
	}
	if e.To == store.Pending {
		g.want(n, e.At, why)
		g.make(why, e.At)
	}
	if troubled(e.Verdict) || e.Replacement != "" || !endsSlot(e) && e.To == store.Deleting {
		g.count(n, e.At)
	}
	if e.Kind == store.EntryVerdict {
		p.judged(g, m, e, why)
	}
	if e.Replacement != "" {
		g.make(why, e.At)
	}
	if e.From == store.Running && e.To != store.Running && e.To != "" && m.serves {
		m.serves = false
		g.leave(n, e.Instance, cmp.Or(m.suspectIf(e.Verdict), e.At), why)
		if troubled(e.Verdict) {
			g.failed(n, e, m)
		}
	}
	if f := g.slot(n).failure; f != nil && !f.replaced && (e.Replacement != "" ||
		f.instance == e.Instance && e.To == store.Stopping) {
		f.replaced = true
		if g.within(e.At) && !f.drill {
			g.replace = append(g.replace, sample{e.At.Sub(f.seen), f.instance})
		}
	}
	if e.To == store.Running {
		m.serves, m.failed, m.suspect = true, false, time.Time{}
		g.serve(n, e.Instance, e.At)
	}
	if (e.To == store.Draining || e.To == store.Deleting || e.To == store.Finished) && endsSlot(e) {
		g.unwant(n, e.At)
	}
}

// judged applies a verdict.
func (p *walk) judged(g *group, m *instance, e *store.JournalEntry, why string) {
	switch {
	case e.Verdict == store.Suspect:
		if m.suspect.IsZero() {
			m.suspect = e.At
		}
	case troubled(e.Verdict) && m.serves:
		m.serves, m.failed = false, true
		g.leave(*e.Slot, e.Instance, cmp.Or(m.suspectIf(e.Verdict), e.At), why)
		g.failed(*e.Slot, e, m)
	case e.Verdict == store.Live:
		m.suspect = time.Time{}
		if m.failed { // it recovered by itself
			m.serves, m.failed = true, false
			g.serve(*e.Slot, e.Instance, e.At)
		}
	}
}

// suspectIf returns since when the instance was suspected, if that was the first sign of the
// verdict.
func (m *instance) suspectIf(v store.Verdict) time.Time {
	if v == store.Dead || v == store.Lost {
		return m.suspect
	}
	return time.Time{}
}

func troubled(v store.Verdict) bool {
	return v == store.Dead || v == store.Lost || v == store.Unhealthy || v == store.Stuck
}

// failed begins a failure in a slot. A slot that is still served by another instance has none.
func (g *group) failed(n int, e *store.JournalEntry, m *instance) {
	s := g.slot(n)
	if s.failure != nil || len(s.serving) > 0 {
		return
	}
	begun := cmp.Or(m.suspectIf(e.Verdict), e.At)
	drilled := m.drilled()
	s.failure = &failure{instance: e.Instance, begun: begun, seen: e.At, drill: drilled}
	if g.within(e.At) && !drilled && (e.Verdict == store.Dead || e.Verdict == store.Lost) {
		g.detect = append(g.detect, sample{e.At.Sub(begun), e.Instance})
	}
}

func (g *group) make(why string, at time.Time) {
	if g.within(at) {
		g.made[why]++
	}
}

// end ends what is open at the end of the span.
func (g *group) end(to time.Time) {
	for _, s := range g.slots {
		if !s.wanted {
			continue
		}
		if !s.empty.IsZero() {
			g.lose(s, to)
		}
		g.wanted += g.clip(s.since, to)
	}
}

// RuleDrill is the rule of entries that say that a failure is a drill (DAY-6).
const RuleDrill = "DAY-6"
