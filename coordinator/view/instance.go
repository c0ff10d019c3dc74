package view

import (
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// Instance is an instance with its story, including instances that are gone.
type Instance struct {
	Truth     Truth
	Revision  store.Revision
	Now       time.Time
	ID        string
	Group     string
	Slot      int
	There     bool // it has a record
	Unit      Unit
	Record    store.Instance
	Modified  store.Revision // of the record
	Report    store.Versioned[store.Report]
	Load      []Load // the last hour, as this replica saw it
	Lines     []string
	Blocked   []story.Blockage
	Upcoming  *story.Upcoming // what is decided next; nil: nothing is due
	Events    []journal.Entry // about it, oldest first
	Claims    int             // refused requests under its name
	Decision  *journal.Entry  // the decision that matters
	Prevented string          // what would have prevented it
	Since     time.Time       // older entries are not in memory
}

// Instance returns the present state of an instance; false: nothing was read yet.
func (s *Source) Instance(id string, now time.Time) (v Instance, read bool) {
	v.Now, v.ID, v.Slot = now, id, -1
	if !s.cache.View(func(c *cache.Content) {
		v.Revision = c.Revision
		i, there := c.Instances[id]
		if v.There = there; !there {
			return
		}
		v.Record, v.Modified = i.Record, i.Modified
		v.Report, v.Unit = c.Reports[id], s.unitOf(c, id, now)
		v.Group, v.Slot = i.Record.Group, i.Record.Slot
		v.Lines = append(story.InstanceLines(i.Record, now), story.AgentLines(c.Alive[id], c.Reports[id], now)...)
		v.Lines = append(v.Lines, story.UnregisteredLines(i.Record, c.Replicas, now)...)
		v.Upcoming = instanceUpcoming(c, id, now)
		slot := c.Slots[v.Group][v.Slot]
		if line := story.SlotState(slot.Record, now); line != "" {
			v.Lines = append(v.Lines, "slot: "+line)
		}
		for _, blocked := range c.Status[v.Group].Record.Blocked {
			if blocked.Instance == id || reason.OfGroup(&blocked) {
				v.Blocked = append(v.Blocked, story.Merge([]store.Blocked{blocked})...)
			}
		}
	}) {
		return v, false
	}
	v.Truth = s.Truth(now)
	if v.There {
		v.Load = s.Load(id, now)
	}
	s.journal.View(func(entries []journal.Entry, since time.Time) {
		v.Since = since
		for _, e := range entries {
			switch {
			case e.Claimed && e.Instance == id:
				v.Claims++
			case e.Instance == id || e.Replacement == id:
				v.Events = append(v.Events, e)
			}
		}
	})
	v.decide()
	return v, true
}

// decide finds the decision that matters among the entries, and what would have prevented it.
func (v *Instance) decide() {
	for i, e := range slices.Backward(v.Events) {
		if e.Instance != v.ID {
			continue
		}
		if v.Group == "" {
			v.Group = e.Group
		}
		if v.Decision == nil && reason.Matters(&e.JournalEntry) {
			v.Decision = &v.Events[i]
			v.Prevented = reason.Prevented(&e.JournalEntry, story.Clock(e.At, v.Now))
		}
	}
}

// Answer describes the instance's state, present or past, in a sentence.
func (v Instance) Answer() string {
	if v.There {
		return v.Unit.Label()
	}
	for _, e := range slices.Backward(v.Events) {
		if e.Instance == v.ID && (e.To == store.Draining || e.To == store.Deleting) {
			why := reason.Clause(e.Cause, e.Why)
			if e.Cause.Kind != store.CauseOrder && e.Verdict.Failed() {
				why = "it was " + strings.ToUpper(string(e.Verdict))
			}
			return v.ID + " was DELETED " + story.Clock(e.At, v.Now) + " because " + why
		}
	}
	return v.ID + " is gone; the journal in memory does not say why"
}

// Heir is the instance that was requested in its place.
func (v Instance) Heir() string {
	for _, e := range slices.Backward(v.Events) {
		if e.Instance == v.ID && e.Replacement != "" {
			return e.Replacement
		}
	}
	return ""
}
