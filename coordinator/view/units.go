package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// Kinds are the kinds of state that the grid distinguishes, worst first, as filters name them.
var Kinds = []string{
	"lost", "dead", "unhealthy", "suspect", "doomed", "starting", "leaving", "live", "finished", "vacant",
}

// Glyphs are the signs of the kinds: color is never the only sign.
var Glyphs = map[string]string{
	"lost": "×", "dead": "■", "unhealthy": "!", "suspect": "?", "doomed": "»", "starting": "+",
	"leaving": "−", "live": "·", "finished": "✓", "vacant": "○",
}

// Meanings say what the kinds mean.
var Meanings = map[string]string{
	"lost": "its lease ended, and that was confirmed", "dead": "its provider says so",
	"unhealthy": "its checks fail, or it did not get healthy in time",
	"suspect":   "its agent is silent; nothing is proved", "doomed": "it will end, by a notice or by an evacuation",
	"starting": "requested, created, booting, checking, or being restarted",
	"leaving":  "it drains, or is being deleted", "live": "it runs, and its checks pass",
	"finished": "a task that is done", "vacant": "a slot without an instance",
}

// Unit is an instance in the grid and the table. It is comparable: equal units look the same.
type Unit struct {
	ID, Group, Zone, Kind, Phase, Health, Why, Rule string
	Now, Agent, Template, Address, Replaces         string
	Slot, Relaunch                                  int
	Since, Created                                  time.Time
}

// unitsOf returns the instances of a group, ordered by slot.
func (s *Source) unitsOf(c *cache.Content, group string, now time.Time) []Unit {
	var units []Unit
	for _, id := range c.ByGroup[group] {
		units = append(units, s.unitOf(c, id, now))
	}
	inOrder(units)
	return units
}

func inOrder(units []Unit) {
	slices.SortFunc(units, func(a, b Unit) int {
		return cmp.Or(cmp.Compare(a.Slot, b.Slot), a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
}

func (s *Source) unitOf(c *cache.Content, id string, now time.Time) Unit {
	i := c.Instances[id].Record
	var alive *store.Alive
	if v := c.Alive[id]; v.Present() {
		alive = &v.Record
	}
	var last *story.LastReport
	if v := c.Reports[id]; v.Present() {
		last = &story.LastReport{BootID: v.Record.BootID, Healthy: v.Record.Healthy, Why: v.Record.Why}
	}
	health := story.HealthOf(i, alive, last)
	verdict, journaled := s.journal.Verdict(id)
	st := c.Status[i.Group].Record
	if journaled && !health.Ill() && i.Phase == store.Running && verdict.Verdict == store.Suspect &&
		story.Stands(&verdict.JournalEntry, &st, c.Instances[id].Modified, c.Alive[id].Modified, 0) {
		health = story.Health{Word: "SUSPECT", Rule: verdict.Rule, Why: reason.OneLine(verdict.Why)}
	}
	u := Unit{
		ID: i.ID, Group: i.Group, Zone: i.Zone, Phase: string(i.Phase), Health: strings.ToLower(health.Word), Slot: i.Slot,
		Now: story.InstanceNow(i, now), Template: i.Template, Address: i.Address, Replaces: i.Replaces,
		Since: i.Since, Created: i.Created, Relaunch: i.Relaunch, Rule: health.Rule, Why: health.Why, Agent: "-",
	}
	if alive != nil {
		u.Agent = string(alive.State)
	}
	heard := alive != nil && !alive.State.Troubled()
	u.Kind = kindOf(i, health, verdict.Verdict, heard)
	if journaled && (u.Kind == "lost" || u.Kind == "dead") { // the leader knows more than that the agent is silent
		u.Rule, u.Why = verdict.Rule, reason.OneLine(verdict.Why)
	}
	if u.Why == "" && u.Kind != "live" {
		u.Rule, u.Why = lastOf(&i, alive, last)
	}
	return u
}

// lastOf says why an instance is on its way: what its checks wait for, or what was decided last.
func lastOf(i *store.Instance, alive *store.Alive, last *story.LastReport) (rule, why string) {
	if i.Phase == store.Checking && alive != nil && last != nil && last.BootID == alive.BootID && !last.Healthy &&
		last.Why != "" {
		return "DET-10", reason.OneLine(last.Why)
	}
	what, why := reason.OneLine(i.Last.What), reason.OneLine(reason.Clause(i.Last.Cause, i.Last.Why))
	if what != "" && why != "" {
		what += ": "
	}
	return i.Last.Rule, what + why
}

// kindOf returns how the grid shows an instance. A verdict comes from a leader, and may be older
// than the records: an agent that reports is neither lost nor dead.
func kindOf(i store.Instance, health story.Health, verdict store.Verdict, heard bool) string {
	switch {
	case i.Phase == store.Finished:
		return "finished"
	case i.Dead, !heard && verdict == store.Dead:
		return "dead"
	case i.Drain != nil && i.Drain.Lost, !heard && verdict == store.Lost && i.Phase != store.Deleting:
		return "lost"
	case i.Phase == store.Draining, i.Phase == store.Deleting:
		return "leaving"
	case health.Word == story.Unhealthy, verdict == store.Stuck && i.Phase != store.Running:
		return "unhealthy"
	case health.Ill():
		return "suspect"
	case i.Doomed != nil, i.Condemned != nil:
		return "doomed"
	case i.Phase == store.Running:
		return "live"
	default:
		return "starting"
	}
}

// Label describes the instance in a sentence, for screen readers.
func (u Unit) Label() string {
	text := u.ID + " is " + u.Kind
	if u.Kind != u.Phase && u.Kind != "live" {
		text += ", " + u.Phase
	}
	switch {
	case u.Kind == "live" && u.Replaces != "":
		text += ", in place of " + u.Replaces
	case u.Why != "" && u.Kind != "live":
		text += ": " + u.Why
	}
	return text
}

// Sick reports whether instances of a kind do not work.
func Sick(kind string) bool { return Worst(kind) <= Worst("unhealthy") }

// Worst returns the position of a kind in the order of the table.
func Worst(kind string) int { return slices.Index(Kinds, kind) }
