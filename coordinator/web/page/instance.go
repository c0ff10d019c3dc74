package page

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// instancePage is what the templates of the page of an instance show.
type instancePage struct {
	Now       time.Time
	ID        string
	Group     string
	Slot      int
	There     bool // it has a record
	Unit      unit
	Record    store.Instance
	Report    store.Versioned[store.Report]
	Lines     []string
	Blocked   []story.Blockage
	Events    []journal.Entry // about it, the oldest first
	Claims    int             // refused requests under its name
	Decision  *journal.Entry  // the one that matters
	Prevented string          // what would have prevented it
	Since     time.Time       // what is older is not in memory
}

func (p *Pages) instance(b *builder, id string) Page {
	v := instancePage{Now: b.now, ID: id, Slot: -1}
	var st *story.Shard
	if !b.view(func(c *cache.Content) {
		st = p.shardOf(c)
		i, there := c.Instances[id]
		if v.There = there; !there {
			return
		}
		v.Record, v.Report, v.Unit = i.Record, c.Reports[id], p.unitOf(c, id, b.now)
		v.Group, v.Slot = i.Record.Group, i.Record.Slot
		v.Lines = append(story.InstanceLines(i.Record, b.now), story.AgentLines(c.Alive[id], c.Reports[id], b.now)...)
		slot := c.Slots[v.Group][v.Slot]
		if line := story.SlotState(slot.Record, b.now); line != "" {
			v.Lines = append(v.Lines, "slot: "+line)
		}
		for _, blocked := range c.Status[v.Group].Record.Blocked {
			if blocked.Instance == id || reason.OfGroup(&blocked) {
				v.Blocked = append(v.Blocked, story.Merge([]store.Blocked{blocked})...)
			}
		}
	}) {
		return b.unread()
	}
	p.deps.Journal.View(func(entries []journal.Entry, since time.Time) {
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
	for i, e := range slices.Backward(v.Events) {
		if e.Instance != id {
			continue
		}
		if v.Group == "" {
			v.Group = e.Group
		}
		if v.Decision == nil && reason.Matters(&e.JournalEntry) {
			v.Decision = &v.Events[i]
			v.Prevented = reason.Prevented(&e.JournalEntry, story.Clock(e.At, b.now))
		}
	}
	page := b.page(p.truth(st, b.now), st.Revision)
	page.Title, page.Here, page.Command = id, "shard", "leasehold explain "+id
	if v.Group != "" {
		page.Trail = append(page.Trail, Step{v.Group, "/g/" + url.PathEscape(v.Group)})
	}
	page.Trail = append(page.Trail, Step{id, "/i/" + url.PathEscape(id)})
	if !v.There && len(v.Events) == 0 {
		page.Status = http.StatusNotFound
		page.Main = []Fragment{b.fragment("lost", "noinstance", v)}
		return page
	}
	page.Said = v.Answer()
	page.Main = []Fragment{b.fragment("answer", "answer", v), b.fragment("facts", "facts", v), b.fragment("story", "story", v)}
	return page
}

// Answer says how the instance is, or was, in a sentence.
func (v instancePage) Answer() string {
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
func (v instancePage) Heir() string {
	for _, e := range slices.Backward(v.Events) {
		if e.Instance == v.ID && e.Replacement != "" {
			return e.Replacement
		}
	}
	return ""
}
