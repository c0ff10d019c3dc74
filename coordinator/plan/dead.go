package plan

import (
	"github.com/leasehold/leasehold/store"
)

// removeAllDead handles dead members first: they wait for no budget, but use it.
func (d *healing) removeAllDead() {
	for _, sl := range d.order {
		for _, m := range sl.members {
			if m.dead() && !m.gone() && m.phase != store.Draining && m.phase != store.Finished {
				d.removeDead(sl, m)
			}
		}
	}
}

// withdrawFailed gives up creations that cannot succeed.
func (d *healing) withdrawFailed() {
	for _, m := range d.members {
		if m.Record.Managed && (m.phase == store.Pending || m.phase == store.Creating) {
			d.giveUp(m)
		}
	}
}

// removeDead removes a dead member at once, and records its replacement in the same transaction.
// Under the policy restart, the member is restarted instead if its machine exists (DET-4).
func (d *healing) removeDead(sl *slot, m *member) {
	if m.touched || sl.touched || d.made >= maxCreations { // the rest on the next cache
		return
	}
	surplus := d.surplus() // a surplus member is removed in any case (REC-4)
	if d.waitsProtected(m) || !surplus && d.holdBack(m) {
		return
	}
	if !surplus && d.restartDead(sl, m) {
		return
	}
	flaps := d.flapping.fail(sl, m)
	alone := len(d.others(m, usable)) == 0
	needed := !surplus && d.counts.filled < d.spec.Size
	why := motive{store.PurposeHeal, m.judgment.Rule, m.judgment.Cause}
	a := d.retire(m, why, store.EffectDeleting, m.facts(), m.proof(d.s.Keys)...)
	if needed && alone {
		// until there is a replacement
		sl.Record.Vacated = &store.Vacated{Instance: m.ID(), Dead: true, Purpose: store.PurposeHeal}
	}
	switch {
	case flaps && needed:
		a.Effect.Then = sl.waits()
	case alone && needed && d.budget.overLimit(true) != nil:
		a.Effect.Then = store.SlotEffect{Kind: store.EffectSlotRoom}
	case alone && needed && len(d.zones()) > 0:
		d.addReplacement(a, sl, m, motive{store.PurposeHeal, "DET-4", of(store.CauseDead)})
	}
	d.writeSlot(a, sl)
}

// restartDead restarts a dead machine in its place, if that is the policy and it may help. If
// another member fills the slot, a restart would only create a surplus.
func (d *healing) restartDead(sl *slot, m *member) bool {
	if d.spec.Heal.Policy != store.HealRestart || !m.Sighting.Listed || m.unwantedOrdered() ||
		len(d.others(m, (*member).fills)) > 0 {
		return false
	}
	if d.waits(m.task(store.WorkRestart), d.flapping.blocker(sl)) {
		return true
	}
	if d.nextRestart(m) == "" {
		return false
	}
	if d.flapping.fail(sl, m) {
		d.flapping.note(sl, m)
		return true
	}
	a := d.restart(m, store.RestartMachine, m.judgment.Rule, m.judgment.Cause, true, nil)
	d.writeSlot(a, sl)
	return true
}

// unwantedOrdered reports whether a member has to go whether it works or not.
func (m *member) unwantedOrdered() bool { return m.Record.Condemned != nil || m.doom.rule != "" }
