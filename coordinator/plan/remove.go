package plan

import (
	"slices"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// removals removes instances, and ends the records of those that are gone.
type removals struct{ *draft }

// finish ends the records of machines that are proved to be gone, and of those that were never
// requested. Until then the record stays, however long that takes: the next leader depends on it
// (SAFE-8).
func (d *removals) finish() {
	for _, m := range d.members {
		if m.Record.Phase != store.Deleting || m.touched || m.Calls.Busy || d.damage.untouchable(m) {
			continue
		}
		if proof := d.provedGone(m); proof != nil && d.traffic.forgettable(m) {
			d.end(m, *proof)
		}
	}
}

// ending is why the record of an instance may end, with the evidence.
type ending struct {
	why        store.Cause
	facts      []store.Fact
	conditions []store.Condition
	writes     []store.Write
}

// end deletes the record of an instance.
func (d *removals) end(m *member, e ending) *Action {
	m.touched = true
	keys := d.s.Keys
	d.actions = append(d.actions, Action{
		Group: d.g.Name, Instance: m.ID(), Slot: m.Record.Place(), Rule: "SAFE-8", Effect: effect(store.EffectGone),
		Why: reason.Short(e.why), Cause: e.why, Facts: e.facts, From: store.Deleting,
		Conditions: append([]store.Condition{m.Unchanged()}, e.conditions...),
		Writes: append([]store.Write{
			store.Delete(m.Key), store.Delete(keys.Alive(m.ID())), store.Delete(keys.Report(m.ID())),
			store.Delete(keys.Joined(m.ID())),
		}, e.writes...),
	})
	return &d.actions[len(d.actions)-1]
}

// provedGone returns the proof that nothing is left of an instance that is being deleted, or nil.
func (d *removals) provedGone(m *member) *ending {
	switch {
	case !m.Record.Called:
		return &ending{why: of(store.CauseNeverAsked)}
	case m.byHand():
		return d.endedByHand(m)
	}
	see := m.Sighting
	confirmed := !m.Calls.Deleted.IsZero() && see.Begun.After(m.Calls.Deleted) && !see.Listed
	if !confirmed && !d.vanished(m) {
		return nil
	}
	if see.Begun.Before(m.Calls.AbsentFrom) {
		d.wake(m.Calls.AbsentFrom)
		d.block("SAFE-8", m.task(store.WorkForget), store.BlockedByEarlierCalls, store.BlockedFacts{})
		return nil
	}
	if !confirmed {
		failed := store.Fact{
			Kind: store.FactListAfterFail, For: store.Duration(see.Begun.Sub(m.Calls.RemovalFailed).Round(1e6)),
		}
		return &ending{
			why:   store.Cause{Kind: store.CauseVanished, Text: m.Calls.Problem},
			facts: []store.Fact{providerSays(m.Instance), failed},
		}
	}
	return &ending{why: of(store.CauseRemoved), facts: []store.Fact{
		providerSays(m.Instance),
		{Kind: store.FactListAfter, For: store.Duration(see.Begun.Sub(m.Calls.Deleted).Round(1e6))},
	}}
}

// vanished reports whether the machine of an instance that is being deleted is gone although no
// removal of it succeeded. A provider may remove a machine and never answer within the call's
// time-out; its Lists then are the only proof. Without an answer one List is not enough, nor are a
// few that may be wrong together. The agent's wanted state is to stop, so its silence proves
// nothing here. The machine must be absent for orphan_grace, from Lists that include every machine
// whose agent reports.
func (d *removals) vanished(m *member) bool {
	failed, see := m.Calls.RemovalFailed, m.Sighting
	if see.Listed || failed.IsZero() || !see.Begun.After(failed) || see.Sure < 2 || m.Alive.Present() {
		return false
	}
	absent := see.Since.Add(d.s.Shard.Record.Settings.OrphanGrace.D())
	if d.now.Before(absent) {
		d.wake(absent)
		return false
	}
	return true
}

// empty removes all managed instances of a group that is stopped, or being deleted, and then a
// deleted group itself (REC-7, REC-11).
func (d *removals) empty(rule, how string) {
	why := store.Cause{Kind: store.CauseGroupEnds, Name: how}
	full := false
	for _, m := range d.members {
		if m.gone() || m.touched || !m.Record.Managed || m.phase == store.Draining {
			continue
		}
		// a member that is going down already needs no more budget
		if !m.goingDown() && (full || d.waits(m.task(store.WorkDelete), d.budget.deletionBlocker(m))) {
			full = true
			continue
		}
		d.retire(m, motive{store.PurposeEnd, rule, why}, store.EffectDeleting, nil)
	}
	if !d.spec.Deleting || !d.groupEnds() || slices.ContainsFunc(d.order, func(sl *slot) bool { return sl.touched }) {
		return // a slot that this plan changes already, for example by an order, follows on the next cache
	}
	a := Action{
		Group: d.g.Name, Rule: "REC-7", Effect: effect(store.EffectGroupDeleted),
		Why: reason.Short(of(store.CauseGroupEmpty)), Cause: of(store.CauseGroupEmpty), Conditions: d.common(),
	}
	for _, v := range d.g.Slots {
		if len(a.Writes) == maxSlotsAtOnce {
			a.Effect, a.NoJournal = effect(store.EffectSlotsRemoved), true
			d.actions = append(d.actions, a)
			return // the rest on the next cache
		}
		a.Conditions = append(a.Conditions, v.Unchanged())
		a.Writes = append(a.Writes, store.Delete(v.Key))
	}
	if d.g.Spec.Modified != 0 {
		a.Writes = append(a.Writes, store.Delete(d.specKey()))
	}
	if d.g.Spec.StaticModified != 0 {
		a.Writes = append(a.Writes, store.Delete(d.g.Spec.Static))
	}
	if d.g.Status.Present() {
		a.Conditions = append(a.Conditions, d.g.Status.Unchanged())
		a.Writes = append(a.Writes, store.Delete(d.g.Status.Key))
	}
	if d.g.Turn != 0 {
		turn := d.s.Keys.Turn(d.g.Name)
		a.Conditions = append(a.Conditions, store.At(turn, d.g.Turn))
		a.Writes = append(a.Writes, store.Delete(turn))
	}
	d.actions = append(d.actions, a)
}

// maxSlotsAtOnce keeps a transaction below store.MaxOps.
const maxSlotsAtOnce = 50 // each is deleted with a note

// releaseBesideFinished removes the other members of a finished task's slot: replacements by a roll
// or after a failure have nothing left to do (REC-12).
func (d *removals) releaseBesideFinished() {
	for _, sl := range d.order {
		done := sl.finished()
		if done == nil || len(sl.members) == 1 {
			continue
		}
		for _, m := range sl.members {
			if m != done && !m.gone() && m.phase != store.Draining && !m.dead() {
				d.settling.release(m, done, motive{
					store.PurposeEnd, "REC-12", store.Cause{Kind: store.CauseTaskDone, Other: done.ID()},
				}, store.EffectWithdrawn)
			}
		}
	}
}

// removeFinished removes a finished task that was ordered to go. Its slot is filled again, so that
// the task runs again (REC-16).
func (d *removals) removeFinished() {
	for _, m := range d.members {
		c := m.Record.Condemned
		if m.phase != store.Finished || c == nil || m.touched || !m.Record.Managed || m.slot.touched {
			continue
		}
		if !d.waits(m.task(store.WorkRemove), d.budget.deletionBlocker(m)) {
			a := d.retire(m, motive{store.PurposeOrder, "REC-16", orderedBy(c.By)}, store.EffectDeleting, nil)
			d.writeSlot(a, m.slot)
		}
	}
}

// finished returns the oldest member of the slot whose task is done; nil if there is none.
func (sl *slot) finished() *member {
	for _, m := range sl.members {
		if m.phase == store.Finished && m.Record.Condemned == nil {
			return m
		}
	}
	return nil
}

// occupied reports whether the slot has an instance that is not leaving, dead or not. An instance
// that only this plan removes still counts.
func (sl *slot) occupied() bool {
	return sl.damaged != nil || sl.used()
}

// used reports the same as occupied, from the readable records only.
func (sl *slot) used() bool {
	for _, m := range sl.members {
		if m.Record.Phase.Fills() || m.Record.Phase == store.Finished {
			return true
		}
	}
	return false
}

// leftOver handles what remains of a group without a spec: instances on demand, which only the
// operator removes (REC-2, REC-7).
func (d *removals) leftOver() {
	if d.s.Shard.Record.Hold != nil || d.s.stale() {
		return
	}
	d.drains.follow()
	for _, m := range d.members {
		if c := m.Record.Condemned; c != nil && !m.touched && !m.gone() && m.phase != store.Draining {
			d.retire(m, motive{store.PurposeOrder, "REC-16", orderedBy(c.By)}, store.EffectDeleting, m.facts())
		}
	}
	d.withdrawUnused()
}

// removeOnDemand removes instances on demand that were ordered to go or are too old: they are never
// replaced (REC-2).
func (d *removals) removeOnDemand() {
	for _, m := range d.members {
		if m.Record.Managed || m.touched || m.gone() || m.phase == store.Draining {
			continue
		}
		why, blocker := motive{store.PurposeAge, m.age.rule, m.age.cause}, d.budget.plannedDeletionBlocker
		if c := m.Record.Condemned; c != nil {
			why, blocker = motive{store.PurposeOrder, "REC-16", orderedBy(c.By)}, d.budget.deletionBlocker
		} else if why.rule == "" || m.Record.Protected != "" {
			d.showDoomed(m)
			continue
		} else if d.waits(m.task(store.WorkExpire), d.expiry.blocker(m)) {
			continue
		}
		if !d.waits(m.task(store.WorkRemove), blocker(m)) {
			d.retire(m, why, store.EffectDeleting, m.facts())
		}
	}
}

// showDoomed reports that an instance on demand will end or has to go, and that only its operator
// can act on that.
func (d *removals) showDoomed(m *member) {
	if m.doom.rule != "" {
		d.block(m.doom.rule, m.task(store.WorkRemove), store.BlockedByOnDemand, store.BlockedFacts{Cause: m.doom.cause})
	}
}

// withdrawUnused ends instances whose join tokens were not used in time.
func (d *removals) withdrawUnused() {
	for _, m := range d.members {
		if !m.byHand() || m.phase != store.Booting || m.touched || m.Joined || m.Alive.Present() ||
			m.judgment.Verdict != store.Stuck {
			continue
		}
		a := d.step(m, store.Deleting, "PROV-9", effect(store.EffectWithdrawn),
			store.Cause{Kind: store.CauseUnused, For: m.Record.Spec.RegistrationTimeout}, m.facts(), nil)
		a.Conditions = append(append(a.Conditions, d.common()...), store.Absent(d.s.Keys.Joined(m.ID())))
	}
}
