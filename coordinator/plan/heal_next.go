package plan

import (
	"slices"

	"github.com/leasehold/leasehold/store"
)

// Forced expiry comes before healing (REC-5). Where instances reach their forced age faster than
// they are replaced, it would take the room for additional instances each time that some is free,
// and healing would never begin. So the two alternate: the status names a member that waited while
// forced expiry began a replacement, and that member comes before further forced expiry.

// postpone notes a member that has to be replaced and must wait: the one that the status names, if
// that still waits, else the first. Where healing may make no additional instance, forced expiry
// takes no room from it.
func (d *healing) postpone(m *member) {
	if m.slot.touched || m.goesNow() || d.damage.untouchable(m) || d.budget.boundsOf(d.spec.Budget.Heal).expansion == 0 {
		return
	}
	if d.postponed == "" || m.ID() == d.g.Status.Record.HealNext {
		d.postponed = m.ID()
	}
}

// nextToHeal returns the member that the status is to name; "" if there is none.
func (d *healing) nextToHeal() string {
	if d.expiry.forced || d.postponed == d.g.Status.Record.HealNext {
		return d.postponed
	}
	return ""
}

// nextMember returns the member that the status names; nil if there is none, or it need not be
// replaced any more.
func (d *healing) nextMember() *member {
	id := d.g.Status.Record.HealNext
	if id == "" {
		return nil
	}
	if m := d.find(id); m != nil && m.slot != nil && m.unwanted() && !m.goesNow() {
		return m
	}
	return nil
}

// nextSlot returns the slot to heal before others; nil if there is none.
func (d *healing) nextSlot() *slot {
	m := d.nextMember()
	if m == nil || m.slot.goesNow() {
		return nil
	}
	return m.slot
}

// nextBlocker returns the member that forced expiry waits for; nil if there is none. If other work
// has the room that the member needs, forced expiry does not wait: its end would free too little.
func (d *healing) nextBlocker() *blocker {
	m := d.nextMember()
	if m == nil {
		return nil
	}
	others := d.budget.expansion() - d.budget.finishing() - d.expiry.inUse()
	if others >= d.budget.boundsOf(d.spec.Budget.Heal).expansion {
		return nil
	}
	return blocked("REC-5", store.BlockedByHealing, store.BlockedFacts{Other: m.ID()})
}

// inUse returns how many additional machines exist because instances are replaced for their age,
// apart from those that budget.finishing counts.
func (d *expiry) inUse() int {
	n := 0
	for _, sl := range d.order {
		if len(sl.members) < 2 || sl.members[len(sl.members)-1].Record.MadeFor() != store.PurposeAge &&
			!slices.ContainsFunc(sl.members, (*member).leavesForAge) {
			continue
		}
		machines := 0
		for _, m := range sl.members {
			if m.Record.Managed && m.countsAsMachine() && !d.finishes(m) {
				machines++
			}
		}
		n += max(0, machines-1)
	}
	return n
}

// leavesForAge reports whether a member is on its way out because it was too old.
func (m *member) leavesForAge() bool { return m.Record.LeavesBecause() == store.PurposeAge }
