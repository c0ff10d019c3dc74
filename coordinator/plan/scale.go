package plan

import (
	"maps"
	"slices"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// maxCreations and maxRemovals bound what one plan requests; the rest follows on the next
// cache.
const (
	maxCreations = 200
	maxRemovals  = 200
)

// sizing fills the slots that are missing, and removes those that are too many.
type sizing struct{ *draft }

// scaleUp fills the slots that are missing: first those that have a record, then new ones with the
// lowest free numbers (REC-3, HEAL-10). It never makes more than size and max_expansion allow
// together: what drains still counts.
func (d *sizing) scaleUp() {
	missing := d.spec.Size - d.inUse()
	if missing <= 0 {
		return
	}
	// no more are filled in one plan, and drafting 100,000 missing ones would take longer than the
	// rest
	idle := d.idle(min(missing, maxCreations+1))
	have, full, limit := d.spec.Size-missing, false, 0
	limited, heals := false, false // by the limits of the shard, slots that wait among them
	for i, sl := range idle {
		switch {
		case i == maxCreations:
			return
		case sl.touched:
			continue
		case d.waits(task{work: store.WorkFill, slot: sl.number}, d.flapping.blocker(sl)):
			continue
		case d.budget.atCapacity(sl) && !sl.diedLast():
			full, limit = true, max(limit, d.budget.mostFor(sl)) // but not for the dead: they wait for no budget (HEAL-3)
			continue
		case d.waits(task{work: store.WorkCreateRemaining}, d.budget.creationBlocker()):
			return
		case d.budget.overLimit(sl.Record.Vacated != nil) != nil:
			limited, heals = true, heals || sl.Record.Vacated != nil
			continue
		}
		why := store.Cause{Kind: store.CauseUnfilled, Count: have, Limit: d.spec.Size}
		m, write := d.newMember(sl, sl.leaver(), motive{sl.filledFor(), "REC-3", why})
		a := Action{
			Group: d.g.Name, Instance: m.ID(), Slot: m.Record.Place(), Rule: "REC-3", Effect: effect(store.EffectRequested),
			Why: m.Record.Last.Why, Cause: m.Record.Last.Cause, To: store.Pending, Counterfactual: counterfactual("REC-3", ""),
			Conditions: append(d.common(), store.Absent(m.Key)), Writes: []store.Write{write},
		}
		d.templates.madeFrom(&a, &m.Record)
		d.writeSlot(&a, sl)
		d.actions = append(d.actions, a)
		have++
	}
	if limited {
		d.waits(task{work: store.WorkCreateMissing}, d.budget.limitBlocker(heals))
	}
	if full {
		d.block("REC-18", task{work: store.WorkCreateMissing}, store.BlockedByCapacity,
			store.BlockedFacts{Count: d.counts.machines, Limit: limit})
	}
}

// leaver names the instance whose place the next one in the slot takes; "" if there is none.
func (sl *slot) leaver() string {
	if id := draining(sl); id != "" || sl.Record.Vacated == nil {
		return id
	}
	return sl.Record.Vacated.Instance
}

// filledFor returns the reason for which the next instance in the slot is made: why the last
// instance left it. An instance that left for another's sake is missing now, as if it had failed. A
// dead instance comes first, so that healing does not wait behind a roll (REC-9).
func (sl *slot) filledFor() store.Purpose {
	if slices.ContainsFunc(sl.members, (*member).dead) {
		return store.PurposeHeal
	}
	i := slices.IndexFunc(sl.members, func(m *member) bool { return !m.phase.Fills() })
	var why store.Purpose
	switch {
	case i >= 0:
		why = sl.members[i].Record.LeavesBecause()
	case sl.Record.Vacated != nil:
		why = sl.Record.Vacated.For()
	default:
		return store.PurposeSize
	}
	switch why {
	case store.PurposeNotice, store.PurposeEvacuate, store.PurposeOrder, store.PurposeRoll, store.PurposeAge,
		store.PurposeSize:
		return why
	default:
		return store.PurposeHeal
	}
}

// diedLast reports whether the slot is empty since its instance died.
func (sl *slot) diedLast() bool { return sl.Record.Vacated != nil && sl.Record.Vacated.Dead }

// cleanSlots forgets slots that are empty and no longer wanted.
func (d *sizing) cleanSlots() {
	if len(d.order) <= d.spec.Size {
		return
	}
	used := 0
	var idle []*slot
	for _, sl := range d.order {
		switch {
		case sl.damaged != nil || slices.ContainsFunc(sl.members, func(m *member) bool { return !m.gone() }):
			used++
		case sl.Present() && !sl.touched:
			idle = append(idle, sl)
		}
	}
	slices.SortFunc(idle, func(a, b *slot) int { return byNumber(b, a) })
	for _, sl := range idle[:max(0, min(len(idle), used+len(idle)-d.spec.Size))] {
		sl.touched = true
		d.slots.set(sl.number, nil)
		d.order = slices.DeleteFunc(d.order, func(o *slot) bool { return o == sl })
		d.actions = append(d.actions, Action{
			Group: d.g.Name, Slot: &sl.number, Rule: "REC-4", Effect: effect(store.EffectSlotRemoved),
			Why: "it is empty and not wanted", NoJournal: true,
			Conditions: append(d.common(), sl.Unchanged()), Writes: []store.Write{store.Delete(sl.Key)},
		})
	}
}

// The order in which slots go when there are too many: HEAL-9, REC-19.
const (
	slotFailed   = iota // a member failed or is condemned, and no other works yet
	slotDoubtful        // a member is suspect or doomed, and no other works yet
	slotInWork          // a member is coming up, and no other works yet
	slotOutdated        // what works in it is outdated
	slotWorking         // a member works
)

// whyFirst says why a slot of a kind goes.
var whyFirst = map[int]string{
	slotFailed:   reason.SlotFailed,
	slotInWork:   reason.SlotInWork,
	slotDoubtful: reason.SlotDoubtful,
	slotOutdated: reason.SlotOutdated,
	slotWorking:  reason.SlotOldest,
}

// scaleDown removes whole slots while there are too many: REC-4, HEAL-9. Damaged slots are not
// counted: an instance may have been on its way out when its record was lost, and another one would
// be removed in its stead (SAFE-15).
func (d *sizing) scaleDown() {
	surplus := d.counts.filled - d.spec.Size
	for _, sl := range d.order {
		if sl.damaged != nil {
			surplus--
		}
	}
	if surplus <= 0 {
		return
	}
	healing := d.healingInProgress()
	list, shut, full := d.candidates(), d.windows.blocker(store.PlannedScaleDown), false
	for range min(surplus, maxRemovals) {
		c := list.take()
		if c == nil {
			d.block("REC-13", task{work: store.WorkScaleDown}, store.BlockedByProtectedRest, store.BlockedFacts{})
			return
		}
		if full && c.kind >= slotOutdated {
			return // none that follows has to go in any case
		}
		if !needsNoWindow(c) && d.waits(task{work: store.WorkScaleDown}, shut) {
			return // those that have failed come first
		}
		if c.kind >= slotOutdated && healing != "" {
			d.block("REC-4", task{work: store.WorkScaleDownWell}, store.BlockedByScaleHealing,
				store.BlockedFacts{Other: healing})
			return
		}
		for _, m := range c.members {
			switch {
			case m.touched:
				return // the rest on the next cache
			case m.unwantedOrdered(): // an order or an evacuation does not wait for busy ones (BUSY-1)
				if d.waits(m.task(store.WorkScaleDown), d.budget.deletionBlocker(m)) {
					return
				}
			case full:
				continue
			case d.waits(m.task(store.WorkScaleDown), d.budget.plannedDeletionBlocker(m)):
				full = true // for planned work
				continue
			}
			d.retire(m, motive{store.PurposeSize, "HEAL-9", store.Cause{
				Kind: store.CauseSmaller, Count: surplus, Limit: d.spec.Size, Name: whyFirst[c.kind],
			}}, store.EffectDeleting, m.facts(), m.proof(d.s.Keys)...)
		}
	}
}

// healingInProgress names a replacement that is coming up for a failed one, if there is one.
func (d *sizing) healingInProgress() string {
	for _, m := range d.members {
		if m.fills() && m.phase != store.Running && m.Record.Replaces != "" &&
			len(d.others(m, func(o *member) bool { return o.failing() })) > 0 {
			return m.ID()
		}
	}
	return ""
}

// candidate is a slot that may go.
type candidate struct {
	kind    int
	busy    bool // a member that works is not known to be idle
	spot    bool
	zone    string
	members []*member // oldest first
}

// candidates are the slots that may go, and how many instances that will stay each zone has.
type candidates struct {
	list  []candidate
	crowd map[string]int
	// above is how many of those on demand are more than the group wants, if it wants shares of spot
	// and on demand.
	divided bool
	above   int
}

func (d *sizing) candidates() candidates {
	all := candidates{crowd: maps.Clone(d.spread()), divided: d.divided()}
	if _, onDemand := d.countShares(); all.divided {
		all.above = onDemand - d.spec.Capacity.OnDemand(d.spec.Size)
	}
	for _, sl := range d.order {
		if sl.filled == 0 || sl.damaged != nil {
			continue
		}
		c := candidate{kind: d.kindOf(sl), spot: sl.spot, zone: sl.zone, members: sl.staying()}
		c.busy = c.kind >= slotOutdated && d.asksBusy() &&
			slices.ContainsFunc(c.members, func(m *member) bool { return m.phase == store.Running && !d.isIdle(m) })
		if !slices.ContainsFunc(c.members, func(m *member) bool { return m.Record.Protected != "" }) {
			all.list = append(all.list, c)
		}
	}
	return all
}

// kindOf ranks how soon a slot goes: by the best working member, else by the worst other one.
func (d *sizing) kindOf(sl *slot) int {
	best, worst := slotFailed, slotInWork
	for _, m := range sl.staying() {
		switch {
		case m.failing() || m.Record.Condemned != nil:
			worst = slotFailed
		case m.doom.rule != "" || m.judgment.Verdict == store.Suspect:
			worst = min(worst, slotDoubtful)
		case m.phase != store.Running:
		case d.templates.obsolete(m):
			best = max(best, slotOutdated)
		default:
			best = slotWorking
		}
	}
	if best > slotFailed {
		return best
	}
	return worst
}

// staying lists who is in a slot and not on the way out.
func (sl *slot) staying() []*member {
	leaves := func(m *member) bool { return m.gone() || m.phase == store.Draining }
	if !slices.ContainsFunc(sl.members, leaves) {
		return sl.members
	}
	return slices.DeleteFunc(slices.Clone(sl.members), leaves)
}

// take takes out the slot that goes first: by kind, then the oldest in the fullest zone. It returns
// nil if none is left.
func (all *candidates) take() *candidate {
	if len(all.list) == 0 {
		return nil
	}
	first := 0
	for i := range all.list {
		if all.before(&all.list[i], &all.list[first]) {
			first = i
		}
	}
	c, last := all.list[first], len(all.list)-1
	all.list[first] = all.list[last]
	all.list = all.list[:last]
	all.crowd[c.zone]--
	if !c.spot {
		all.above--
	}
	return &c
}

func (all *candidates) before(a, b *candidate) bool {
	if a.busy != b.busy {
		return b.busy // what has failed or comes up is never busy
	}
	if a.kind != b.kind {
		return a.kind < b.kind
	}
	if all.divided && a.spot != b.spot {
		return b.spot == (all.above > 0) // the kind of which there is too much (SPOT-4)
	}
	if x, y := all.crowd[a.zone], all.crowd[b.zone]; x != y {
		return x > y
	}
	return older(a.members[0], b.members[0])
}
