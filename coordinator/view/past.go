package view

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// was is the state of an instance at a moment.
type was struct {
	id, group string
	slot      int
	phase     store.Phase // "": it had no record
	verdict   journal.Entry
	last      journal.Entry // the last decision about it
	undone    bool          // a later entry says what it was before
	seen      bool          // a later entry is about it
}

// GroupAt reconstructs a group's instances at a moment; false: nothing was read yet. Past records
// are not kept: the result is the present records, minus everything that the journal says has
// happened since.
func (s *Source) GroupAt(name string, at, now time.Time) (units []Unit, read bool) {
	if !s.cache.View(func(c *cache.Content) { units = s.unitsOf(c, name, now) }) {
		return nil, false
	}
	s.journal.View(func(entries []journal.Entry, _ time.Time) { units = before(entries, units, name, at) })
	return units, true
}

// InstanceAt reconstructs an instance at a moment, with its history up to then; false: nothing was
// read yet. It has no record and no report, since past ones are not kept.
func (s *Source) InstanceAt(id string, at, now time.Time) (v Instance, read bool) {
	present, read := s.Instance(id, now)
	if !read {
		return v, false
	}
	v = Instance{
		Truth: present.Truth, Revision: present.Revision, Now: now, ID: id, Group: present.Group, Slot: -1,
		Since: present.Since,
	}
	for _, e := range present.Events {
		if e.At.After(at) {
			break
		}
		v.Events = append(v.Events, e)
	}
	v.decide()
	units, _ := s.GroupAt(v.Group, at, now)
	for _, u := range units {
		if u.ID == id {
			v.There, v.Unit, v.Slot = true, u, u.Slot
		}
	}
	return v, true
}

// before reconstructs the instances of a group at a moment.
func before(entries []journal.Entry, now []Unit, group string, at time.Time) []Unit {
	all := map[string]*was{}
	of := func(e journal.Entry) *was {
		w := all[e.Instance]
		if w == nil {
			w = &was{id: e.Instance, group: e.Group, slot: -1}
			all[e.Instance] = w
		}
		if e.Slot != nil {
			w.slot = *e.Slot
		}
		return w
	}
	present := map[string]Unit{}
	for _, u := range now {
		present[u.ID] = u
		all[u.ID] = &was{id: u.ID, group: group, slot: u.Slot, phase: store.Phase(u.Phase)}
	}
	from := len(entries)
	for i, e := range slices.Backward(entries) {
		if !e.At.After(at) {
			break
		}
		from = i
		if e.Group != group || e.Instance == "" || e.Claimed {
			continue
		}
		w := of(e)
		w.seen = true
		if e.To != "" {
			w.phase, w.undone = e.From, true
		}
	}
	for _, e := range entries[:from] {
		if e.Group != group || e.Instance == "" || e.Claimed {
			continue
		}
		w, known := all[e.Instance]
		if !known {
			continue // it was gone before
		}
		switch {
		case e.Kind == store.EntryVerdict:
			w.verdict = e
		case e.To != "":
			if !w.undone && w.phase == "" {
				w.phase = e.To // it was removed later, and nothing says what it was before
			}
			w.last = e
		}
		if !w.undone && e.To != "" && w.seen {
			w.phase = e.To
		}
		if e.Slot != nil {
			w.slot = *e.Slot
		}
	}
	var units []Unit
	for _, w := range all {
		if now := present[w.id]; w.phase == "" || !w.seen && now.Created.After(at) {
			continue
		}
		units = append(units, w.unit(present[w.id]))
	}
	inOrder(units)
	return units
}

func (w *was) unit(now Unit) Unit {
	u := Unit{
		ID: w.id, Group: w.group, Slot: w.slot, Phase: string(w.phase), Zone: now.Zone, Template: now.Template, Agent: "-",
		Now:     "-",
		Created: now.Created,
	}
	i := store.Instance{Phase: w.phase, Dead: w.phase == store.Deleting && w.verdict.Verdict == store.Dead}
	u.Kind = kindOf(i, healthThen(w), w.verdict.Verdict, !w.verdict.Verdict.Failed() && w.verdict.Verdict != store.Suspect)
	said := w.last
	if u.Kind == "suspect" || w.verdict.Verdict.Failed() {
		said = w.verdict
	}
	if u.Kind != "live" {
		u.Rule, u.Why = said.Rule, reason.OneLine(said.What)
		if said.Why != "" {
			u.Why += ": " + reason.OneLine(said.Why)
		}
	}
	return u
}

// healthThen returns what a verdict of that time says of an instance's health.
func healthThen(w *was) story.Health {
	switch v := w.verdict.Verdict; {
	case w.phase != store.Running && w.phase != store.Draining:
		return story.Health{Word: "-"}
	case v == store.Unhealthy:
		return story.Health{Word: story.Unhealthy, Rule: w.verdict.Rule, Why: w.verdict.Why}
	case v == store.Suspect:
		return story.Health{Word: "SUSPECT", Rule: w.verdict.Rule, Why: w.verdict.Why}
	default:
		return story.Health{Word: "healthy"}
	}
}
