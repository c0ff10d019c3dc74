package plan

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// healing restarts and replaces members that failed or have to go.
type healing struct {
	*draft
	breaker   *store.Breaker // as it will be recorded; nil: healing continues
	waiting   string         // a failed member that waits for room in a budget
	postponed string         // a member whose replacement waits: see postpone
}

// heal restarts or replaces failed members, and replaces condemned and doomed ones, slot by slot.
// Members that were ordered to go at once come first: they wait for no budget, but use it. Then
// comes the one that forced expiry went before (REC-5).
func (d *healing) heal() {
	for _, sl := range d.order {
		if sl.goesNow() {
			d.healSlot(sl)
		}
	}
	next := d.nextSlot()
	if next != nil {
		d.healSlot(next)
	}
	for _, sl := range d.order {
		if len(sl.members) == 1 && !sl.touched {
			if m := sl.members[0]; m.phase == store.Running && !m.unwanted() {
				continue // as nearly all are
			}
		}
		if sl != next && !sl.goesNow() {
			d.healSlot(sl)
		}
	}
}

// goesNow reports whether an instance in the slot was ordered to go without waiting.
func (sl *slot) goesNow() bool {
	return slices.ContainsFunc(sl.members, (*member).goesNow)
}

// goesNow reports whether the member was ordered to go without waiting for a replacement.
func (m *member) goesNow() bool { return m.Record.Condemned != nil && m.Record.Condemned.Now }

// healSlot decides for a slot that has failed or condemned members, or more than one member.
func (d *healing) healSlot(sl *slot) {
	var good, bad []*member
	for _, m := range sl.members {
		switch {
		case m.touched:
			return // decided on the next cache
		case m.gone() || m.dead() || !m.phase.Fills():
		case m.unwanted():
			bad = append(bad, m)
		default:
			good = append(good, m)
		}
	}
	switch {
	case len(good) > 0 && len(good)+len(bad) > 1:
		d.settling.settle(sl, good, bad)
	case len(bad) > 1:
		d.keepOne(sl, bad)
	case len(bad) == 1:
		d.healMember(sl, bad[0])
	}
}

// holdBack makes the healing of a member wait for what blocks it, or for the end of a storm. It
// returns false if neither does.
func (d *healing) holdBack(m *member) bool {
	if !m.failing() || m.Record.Condemned != nil {
		return false
	}
	return d.waits(m.task(store.WorkReplace), d.blocker(m)) || d.storms.holdBack(m)
}

// blocker returns why a failed member must not be healed, apart from a storm; nil if it may.
func (d *healing) blocker(m *member) *blocker {
	if b := d.protection(m); b != nil {
		return b
	}
	switch {
	case d.spec.Heal.Policy == store.HealNone && m.doom.rule == "" && len(d.others(m, usable)) == 0:
		// if its place is taken it leaves in any case
		return blocked("HEAL-1", store.BlockedByHealPolicy, store.BlockedFacts{Cause: m.judgment.Cause})
	case d.breaker != nil && m.failsChecks() && m.doom.rule == "" && m.ID() != d.breaker.Probe:
		return blocked("ROLL-7", store.BlockedByBreaker,
			store.BlockedFacts{Count: d.breaker.Count, Limit: d.breaker.Limit, For: d.spec.Storm.ProbeAfter})
	}
	return nil
}

// protection returns a failed member's protection from healing; nil if it has none. An order to go
// overrides the protection.
func (d *healing) protection(m *member) *blocker {
	if m.Record.Protected != store.ProtectHeal || !m.failing() || m.Record.Condemned != nil {
		return nil
	}
	return blocked("REC-13", store.BlockedByHealProtection, store.BlockedFacts{Cause: m.judgment.Cause})
}

// waitsProtected makes the healing of a member wait for the end of its protection. It returns false
// if the member has none.
func (d *healing) waitsProtected(m *member) bool {
	return d.waits(m.task(store.WorkReplace), d.protection(m))
}

// healMember begins the healing of a slot whose only member has failed, is condemned or doomed.
func (d *healing) healMember(sl *slot, m *member) {
	if sl.touched || d.holdBack(m) || !m.failing() && d.doomedAsMade(m) > 0 { // replaceNoticed has recorded why
		return
	}
	failed := m.failing() && m.Record.Condemned == nil && m.doom.rule == ""
	if !m.goesNow() && d.waits(m.task(store.WorkReplace), d.flapping.blocker(sl)) {
		return // also for a working member that has to go: its replacements fail as any others do (FLAP-2)
	}
	if failed && d.spec.Heal.Policy == store.HealRestart {
		if level := d.nextRestart(m); level != "" && d.restartAllowed(m) {
			what := m.task(store.WorkRestart)
			if d.waits(what, d.budget.sharedBlocker(m)) || d.waits(what, d.budget.deletionBlocker(m)) {
				d.waiting = m.ID() // no additional instance for a member that only waits for its turn (HEAL-4)
				return
			}
			d.healByRestart(sl, m, level)
			return
		}
	}
	d.replace(sl, m)
}

// healByRestart restarts a failed member in its place (HEAL-1, HEAL-3).
func (d *healing) healByRestart(sl *slot, m *member, level string) {
	if d.flapping.fail(sl, m) {
		d.flapping.note(sl, m)
		return
	}
	a := d.restart(m, level, "HEAL-1", m.judgment.Cause, true, nil)
	d.writeSlot(a, sl)
}

// replace begins the replacement of a slot's only member.
func (d *healing) replace(sl *slot, m *member) {
	removeFirst, ok := d.roomFor(m)
	if !ok {
		if m.failing() && !sl.touched && d.budget.boundsOf(d.spec.Budget.Heal) != (bounds{}) {
			d.waiting = m.ID()
		}
		d.postpone(m)
		return
	}
	failed := m.Record.Condemned == nil && m.doom.rule == ""
	if failed && d.flapping.fail(sl, m) {
		d.flapping.note(sl, m)
		return
	}
	why := m.grounds("HEAL-2")
	if removeFirst {
		d.removeFirst(sl, m, why)
		return
	}
	a := d.step(m, m.phase, why.rule, effect(store.EffectReplaced), why.cause, m.facts(),
		func(r *store.Instance) { r.Counted = failed })
	a.Conditions = append(append(a.Conditions, d.common()...), m.proof(d.s.Keys)...)
	d.addReplacement(a, sl, m, why)
	d.writeSlot(a, sl)
}

// replacedBy notes the instance that is requested in place of another.
func (a *Action) replacedBy(id string) {
	a.Replacement = id
	if a.Effect.Kind == store.EffectReplaced {
		a.Effect.Instance = id
	} else {
		a.Effect.Then = store.SlotEffect{Kind: store.EffectReplaced, Instance: id}
	}
}

func (d *draft) addReplacement(a *Action, sl *slot, m *member, why motive) {
	r, write := d.newMember(sl, m.ID(), why.placed(m.ID()))
	a.replacedBy(r.ID())
	d.templates.madeFrom(a, &r.Record)
	a.Conditions = append(a.Conditions, store.Absent(r.Key))
	a.Writes = append(a.Writes, write)
}

// removeFirst removes a member to make room. Unless max_expansion allows two machines, its slot is
// filled again only when the machine is gone: until then it counts (REC-18).
func (d *healing) removeFirst(sl *slot, m *member, why motive) {
	a := d.retire(m, why, store.EffectDeleting, m.facts(), m.proof(d.s.Keys)...)
	what := m.task(store.WorkReplace)
	sl.Record.Vacated = &store.Vacated{
		Instance: m.ID(), Purpose: why.purpose, Roll: why.purpose == store.PurposeRoll,
	}
	switch {
	case m.phase != store.Deleting:
	case d.waits(what, d.flapping.blocker(sl)):
		a.Effect.Then = sl.waits()
	case d.budget.atCapacity(sl) || d.budget.overLimit(true) != nil:
		a.Effect.Then = store.SlotEffect{Kind: store.EffectSlotMachine}
	case !d.waits(what, d.budget.creationBlocker()):
		d.addReplacement(a, sl, m, why)
	}
	d.writeSlot(a, sl)
}

// roomFor applies the budgets: it reports whether a member may be replaced now and, if so, whether
// it is removed first. Where there is no room for a failed member, an instance of a roll has to
// give up its own.
func (d *healing) roomFor(m *member) (removeFirst, ok bool) {
	b := d.budget.boundsOf(d.spec.Budget.Heal)
	what := m.task(store.WorkReplace)
	if m.goesNow() { // whether its place can be taken or not
		return true, !d.waits(m.task(store.WorkRemove), d.budget.deletionBlocker(m))
	}
	if !d.budget.roomToCreate() && m.failing() && len(d.zones()) > 0 {
		if leaving := d.roll.makeRoom(m, (*member).comingUp); leaving != "" {
			d.block("HEAL-7", what, store.BlockedByMaxCreating, store.BlockedFacts{Other: leaving})
			return false, false
		}
	}
	if m.touched || d.waits(what, d.budget.creationBlocker()) {
		return false, false
	}
	limited := d.budget.overLimit(true) != nil
	if d.budget.expansion()-d.budget.finishing() < b.expansion && !limited {
		return false, true
	}
	if d.mustKeep(m) && !limited {
		of := d.claimRoom(m, b, d.budget.unavailable())
		of.ExpansionUsed, of.DownUsed = 0, 0 // left out: each change would write the status again
		d.block("SAFE-2", what, store.BlockedByStormProbe, of)
		return false, false
	}
	// An instance that never booted is unavailable already: removing it takes nothing down
	// (HEAL-5). Otherwise several such instances would use up the budget that their own
	// replacements need.
	used := b.down == 0 || d.booted(m) && d.budget.unavailable() >= b.down
	if (used || d.mustKeep(m)) && d.waits(what, d.budget.limitBlocker(true)) {
		return false, false
	}
	if used {
		d.block("HEAL-2", what, store.BlockedByBudget, d.claimRoom(m, b, d.budget.unavailable()))
		return false, false
	}
	if d.waits(what, d.budget.sharedBlocker(m)) || d.waits(what, d.budget.deletionBlocker(m)) {
		return false, false
	}
	return true, true
}

// claimRoom makes an instance of a roll give up its room to a failed member, and returns the use of
// both budgets.
func (d *healing) claimRoom(m *member, b bounds, used int) store.BlockedFacts {
	if b == (bounds{}) {
		return store.BlockedFacts{} // the counts do not matter, and each change would write the status again
	}
	of := store.BlockedFacts{
		Expansion: b.expansion, ExpansionUsed: max(0, d.budget.expansion()), Down: b.down, DownUsed: used,
	}
	if b.expansion > 0 && m.failing() && m.phase.Fills() {
		if of.Other = d.roll.makeRoom(m, (*member).countsAsMachine); of.Other == "" {
			of.Other = d.budget.deletionInTheWay(of.ExpansionUsed - b.expansion)
		}
	}
	return of
}

// mustKeep reports whether a member has to stay until its replacement is healthy.
func (d *healing) mustKeep(m *member) bool {
	return m.missed() && d.storms.storm != nil && d.storms.storm.Ended == "" &&
		d.budget.boundsOf(d.spec.Budget.Heal).expansion > 0
}

// grounds returns the rule and the reason why a member has to go: the given rule if it failed,
// otherwise an order or its doom.
func (m *member) grounds(rule string) motive {
	why := motive{store.PurposeHeal, rule, m.judgment.Cause}
	switch {
	case m.Record.Condemned != nil:
		why = motive{store.PurposeOrder, "REC-16", orderedBy(m.Record.Condemned.By)}
	case m.doom.rule != "":
		why = motive{store.PurposeEvacuate, m.doom.rule, m.doom.cause}
	}
	switch {
	case m.failing() || m.dead():
		why.purpose = store.PurposeHeal
	case m.noticed():
		why.purpose = store.PurposeNotice
	}
	return why
}

// keepOne leaves one of several failed or condemned members: a failed replacement must not take the
// room of the next one (HEAL-13). It keeps a working member if there is one, else a fully booted
// one (HEAL-5), else the oldest.
func (d *healing) keepOne(sl *slot, bad []*member) {
	keep := bad[0]
	for _, m := range bad {
		if d.use(m) > d.use(keep) {
			keep = m
		}
	}
	for _, m := range bad {
		switch {
		case m == keep, d.waitsProtected(m):
			continue
		case keep.healthy() && !d.proven(keep) && d.booted(m):
			d.block("ROLL-3", m.task(store.WorkRemove), store.BlockedByStartup, store.BlockedFacts{Other: keep.ID()})
			return // then that one keeps the slot
		case sl.touched:
			return // the rest on the next cache
		case keep.seemsDown() && !m.goesNow():
			return // until it is known whether that one can keep the slot
		case m.missed() && d.storms.holdBack(m):
			continue
		case d.waits(m.task(store.WorkRemove), d.budget.deletionBlocker(m)):
			return
		}
		why := m.grounds("HEAL-13")
		why.cause = followed(why.cause, func(a *store.CauseAlso) { a.Until = keep.ID() })
		d.flapping.fail(sl, m)
		a := d.retire(m, why, store.EffectDeleting, m.facts(),
			append(m.proof(d.s.Keys), keep.Unchanged())...)
		d.writeSlot(a, sl)
	}
}

// use ranks how useful a leaving member still is to its slot.
func (d *healing) use(m *member) int {
	switch {
	case m.healthy() && d.proven(m):
		return 5
	case m.healthy():
		return 4
	case d.booted(m) && !m.failing(): // it may be cut off for a while
		return 3
	case d.booted(m):
		return 2
	case m.phase == store.Running:
		return 1
	default:
		return 0
	}
}

// proof returns the conditions that the keys behind a member's verdict are unchanged (SAFE-4).
func (m *member) proof(keys store.Keys) []store.Condition {
	if m.Record.Phase == store.Pending || m.Record.Phase == store.Creating {
		return nil
	}
	out := []store.Condition{store.At(keys.Alive(m.ID()), m.Alive.Modified)}
	if v := m.judgment.Verdict; v == store.Unhealthy || v == store.Stuck {
		out = append(out, store.At(keys.Report(m.ID()), m.Report.Modified))
	}
	return out
}

// usable reports whether a member fills its slot and there is no evidence against it.
func usable(m *member) bool { return m.fills() && !m.unwanted() }

// replaceNoticed replaces and drains members with a notice at once: waiting gains nothing (SPOT-2).
func (d *healing) replaceNoticed() {
	for _, sl := range d.order {
		for _, m := range sl.members {
			if !m.noticed() || m.touched || sl.touched || m.dead() || !m.phase.Fills() || m.phase == store.Pending ||
				m.phase == store.Creating {
				continue
			}
			if left := d.doomedAsMade(m); left > 0 {
				d.wake(d.now.Add(left))
				d.block("SPOT-2", m.task(store.WorkReplace), store.BlockedByNewDoom,
					store.BlockedFacts{Cause: m.doom.cause, Other: m.Record.Replaces, For: d.spec.Flap.MinDelay})
				continue
			}
			if d.made >= maxCreations {
				return
			}
			needed := len(d.others(m, usable)) == 0 && d.counts.filled <= d.spec.Size && len(d.zones()) > 0
			why := motive{store.PurposeNotice, "SPOT-2", m.doom.cause}
			a := d.retire(m, why, store.EffectDeleting, m.facts(), m.proof(d.s.Keys)...)
			switch {
			case needed && d.budget.overLimit(true) != nil:
				a.Effect.Then = store.SlotEffect{Kind: store.EffectSlotRoom}
				sl.Record.Vacated = &store.Vacated{Instance: m.ID(), Purpose: why.purpose}
			case needed:
				d.addReplacement(a, sl, m, why)
			}
			d.writeSlot(a, sl)
		}
	}
}

// doomedAsMade returns how long the replacement of a member waits that had a notice from its start:
// until the member is flap.min_delay old. Notices do not count as failures of a slot (FLAP-1). So
// without this wait, a notice that every machine gets, for example from a shared file, would cause
// machines to be created and given up without pause. A member whose machine ends earlier is
// replaced then.
func (d *healing) doomedAsMade(m *member) time.Duration {
	age, r := d.now.Sub(m.Record.Created), &m.Report.Record
	if !m.noticed() || m.Record.Condemned != nil || m.Record.Replaces == "" || age < 0 {
		return 0
	}
	if r.Notice == nil || r.Started.IsZero() || r.Notice.At.Sub(r.Started) >= asMade { // both by its own clock
		return 0
	}
	return max(0, d.spec.Flap.MinDelay.D()-age)
}
