package sim_test

import (
	"slices"

	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// priorities: while an instance of the group has failed, and nothing but its turn keeps it from
// being healed, no room goes to a change of the template or to expiry that may wait (REC-5,
// HEAL-8).
func (in *inquiry) priorities() {
	spec := in.force.spec
	if !in.force.there || spec.Expiry.ForcedAge != nil || spec.Spot.Enabled || spec.Capacity.Spot > 0 || !in.rolls() ||
		spec.Heal.Policy != store.HealNone && in.tr.tolerant(spec) {
		return // what is forced out by its age comes before healing
	}
	for _, m := range in.tr.members(in.a.Group) {
		if in.waitsForTurn(m) {
			in.tr.fail("%s has failed and is not healed yet, and %s is changed before it: %s %s", m.ID, in.a.Instance,
				in.a.Rule, in.a.What())
		}
	}
}

// rolls reports whether the action takes room for a healthy instance that is only outdated.
func (in *inquiry) rolls() bool {
	var old *store.Instance
	makes, takes := false, false
	for _, c := range in.changes {
		if c.old.Present() {
			old = &c.old.Record
		}
		makes, takes = makes || c.begins(), takes || c.leaves()
	}
	if old == nil || !makes && !takes || !old.Managed || old.Condemned != nil || old.Doomed != nil || in.dead(old.ID) ||
		!in.tr.looksHealthy(*old) || in.alone(*old) != nil {
		return false
	}
	return in.reason(change{old: in.tr.w.Instance(old.ID)}) == "outdated"
}

// alone returns another member in the same slot, if there is one that is not on its way out.
func (in *inquiry) alone(m store.Instance) *store.Instance {
	for _, o := range in.tr.members(m.Group) {
		if o.ID != m.ID && o.Managed && o.Slot == m.Slot && !going(o.Phase) {
			return &o
		}
	}
	return nil
}

// beside reports whether another member in the same slot is in a phase. One that is restarted, by
// an operator's order say, comes back and keeps the slot.
func (in *inquiry) beside(m store.Instance, phase store.Phase) bool {
	return slices.ContainsFunc(in.tr.members(m.Group), func(o store.Instance) bool {
		return o.ID != m.ID && o.Managed && o.Slot == m.Slot && o.Phase == phase
	})
}

// waitsForTurn reports whether a member has failed, that it runs still so that its turn needs room,
// and that nothing is under way for it.
func (in *inquiry) waitsForTurn(m store.Instance) bool {
	spec := in.force.spec
	switch {
	case !m.Managed || m.Phase != store.Running || m.Protected != "" || m.Condemned != nil || m.Doomed != nil ||
		in.changing(m.ID):
		return false
	case spec.Heal.Policy != store.HealRecreate || in.dead(m.ID) || in.p.Judgments.Of(m.ID).Verdict != store.Unhealthy:
		return false
	}
	if sim.Read[store.Status](in.tr.w, in.tr.w.Keys().Status(m.Group)).Record.Breaker != nil {
		return false // it is not to be healed (ROLL-7)
	}
	slot := sim.Read[store.Slot](in.tr.w, in.tr.w.Keys().Slot(m.Group, m.Slot)).Record
	return slot.Retry == nil && slot.Errored == "" && in.alone(m) == nil && !in.beside(m, store.Stopping) &&
		!in.inWork(m)
}

// inWork reports whether the same plan does something for a member's slot: what is left of it is
// decided on the next cache.
func (in *inquiry) inWork(m store.Instance) bool {
	for i := range in.p.Actions {
		if a := &in.p.Actions[i]; a.Group == m.Group && a.Slot != nil && *a.Slot == m.Slot {
			return true
		}
	}
	return false
}

func (in *inquiry) changing(id string) bool {
	for _, c := range in.changes {
		if c.old.Present() && c.old.Record.ID == id {
			return true
		}
	}
	return false
}

// waits: a slot that flaps is not filled before its wait is over, and one that is given up not at
// all, unless an operator orders it or the template is another (FLAP-2, FLAP-3, FLAP-7).
func (in *inquiry) waits() {
	for _, c := range in.changes {
		if !c.begins() || !c.next.Managed || c.next.Phase != store.Pending || in.exempt() || in.tr.wrong != 0 {
			continue
		}
		slot := sim.Read[store.Slot](in.tr.w, in.tr.w.Keys().Slot(c.next.Group, c.next.Slot)).Record
		if slot.Template != "" && slot.Template != in.force.hash || in.ofFailed(c.next) {
			continue
		}
		if slot.Errored != "" {
			in.tr.fail("slot %d of %s is given up (%s), and %s is made for it: %s", slot.Number, slot.Group,
				slot.Errored, c.next.ID, in.a.What())
		}
		if r := slot.Retry; r != nil && in.tr.w.Now().Before(r.Start.Add(r.For.D())) {
			in.tr.fail("slot %d of %s waits until %s, and %s is made for it: %s", slot.Number, slot.Group,
				r.Start.Add(r.For.D()).Sub(sim.Epoch), c.next.ID, in.a.What())
		}
	}
}

// ofFailed reports whether a new instance takes the place of one that did not fail: of one that is
// condemned, doomed or outdated.
func (in *inquiry) ofFailed(next store.Instance) bool {
	old, known := in.tr.records[next.Replaces]
	_, evacuated := in.tr.w.Shard().Evacuated[old.Zone]
	return known && (old.Condemned != nil || old.Doomed != nil || evacuated || in.tr.looksHealthy(old))
}
