package plan

import (
	"slices"

	"github.com/leasehold/leasehold/store"
)

// settling decides which of several members keeps a slot.
type settling struct{ *draft }

// settle keeps one healthy member of a slot and removes the others: HEAL-2, HEAL-6.
func (d *settling) settle(sl *slot, good, bad []*member) {
	keep := d.keeper(sl, good)
	if keep == nil {
		d.await(sl, good, bad)
		return
	}
	for _, m := range bad {
		if d.healing.waitsProtected(m) || d.waitsInStorm(m) {
			continue
		}
		d.releaseFailed(sl, m, keep, m.grounds("HEAL-2").succeeded(keep))
	}
	d.forcedOut(sl, good)
	if keep.touched {
		return
	}
	for _, m := range good {
		switch {
		case m == keep || m.judgment.Verdict == store.Suspect || m.moving():
			continue // decided once its state is known, or once its agent has arrived
		case d.roll.blamed() && d.roll.rolls(m, keep) && !m.Record.Rebalances:
			d.release(m, keep, motive{
				store.PurposeSpare, "FLAP-5", store.Cause{Kind: store.CauseRollStopped, Other: keep.ID()},
			}, store.EffectWithdrawn)
			continue
		case older(keep, m) && !d.proven(m) && keep.Record.Protected != store.ProtectHeal &&
			(d.flapsNow(sl.Record) || d.goesBefore(keep, m)):
			why := d.leavingFor(keep, m)
			d.block(why.rule, keep.task(store.WorkRemove), store.BlockedByReplacement,
				store.BlockedFacts{Other: m.ID(), Phase: m.phase, Cause: why.cause})
			continue
		}
		switch {
		case older(keep, m):
			d.release(m, keep, motive{
				store.PurposeSpare, "HEAL-6", store.Cause{Kind: store.CauseUnneeded, Other: keep.ID()},
			}, store.EffectWithdrawn)
		case d.goesBefore(m, keep):
			d.release(m, keep, d.leavingFor(m, keep).succeeded(keep), store.EffectDeleting)
		case !m.healthy():
			d.release(m, keep, motive{store.PurposeHeal, "HEAL-2", of(store.CauseUnproved)}.succeeded(keep),
				store.EffectDeleting)
		default:
			d.release(m, keep, lostTooOften().succeeded(keep), store.EffectDeleting)
		}
	}
}

// waitsInStorm makes the removal of a lost member wait for the end of a storm. It returns false if
// there is none, or if it has lasted so long that probes begin.
func (d *settling) waitsInStorm(m *member) bool {
	return m.missed() && !d.probing() && d.storms.holdBack(m)
}

// probing reports whether a storm has lasted for probe_after. From then on a lost member with a
// healthy replacement is removed: it must not take the room that the next probe needs (SAFE-2).
func (d *settling) probing() bool {
	s := d.storms.storm
	return s != nil && s.Ended == "" && s.NextProbe != nil &&
		!d.now.Before(d.ends(d.g.Due, store.TimerProbe, s.NextProbe))
}

// await waits until a slot has an instance that is proven healthy.
func (d *settling) await(sl *slot, good, bad []*member) {
	for _, m := range bad {
		switch {
		case d.healing.waitsProtected(m):
		case m.goesNow():
			d.release(m, good[0], motive{store.PurposeOrder, "REC-16", orderedBy(m.Record.Condemned.By)}, store.EffectDeleting)
		case d.waitsInStorm(m):
		case older(good[0], m) && m.failing() && !m.Record.Counted && !sl.touched && (d.up(good[0]) || !d.booted(m)):
			// A replacement that failed while the original still works, even barely: it must not
			// take the room of the next one.
			why := m.grounds("HEAL-13")
			why.cause = followed(why.cause, func(a *store.CauseAlso) { a.Keeper = good[0].ID() })
			d.releaseFailed(sl, m, good[0], why)
		default:
			d.block("HEAL-2", m.task(store.WorkRemove), store.BlockedByReplacement,
				store.BlockedFacts{Other: good[0].ID(), Phase: good[0].phase})
		}
	}
	for _, m := range good {
		if first := sl.members[0]; m != first && d.failsInVain(m) {
			d.release(m, first, motive{
				store.PurposeSpare, "HEAL-6", store.Cause{Kind: store.CauseUnwanted, Text: m.Report.Record.Why},
			}, store.EffectWithdrawn)
		}
	}
	d.forcedOut(sl, good)
}

// moving reports whether the member's agent is moving to another replica. Until it has arrived, the
// member is neither relied on nor removed.
func (m *member) moving() bool { return m.Alive.Record.State == store.StreamMoved }

// failsInVain reports whether a replacement fails on a template that is no longer wanted: the next
// one has another template, and need not wait as long as DET-10 allows this one. A replacement that
// has not been checked yet may still become healthy first.
func (d *settling) failsInVain(m *member) bool {
	if m.phase != store.Checking || !d.templates.obsolete(m) || m.Record.Protected != "" || d.roll.blamed() ||
		!reportIsCurrent(m.Instance) {
		return false
	}
	return slices.ContainsFunc(m.Report.Record.Checks,
		func(c store.CheckReport) bool { return !c.Healthy && !c.Pending && !c.Optional })
}

// leaving reports whether a working member is to be replaced: it is outdated, too old or moving to
// another zone, and not protected.
func (v *view) leaving(m *member) bool { return v.urgency(m) > 0 }

// urgency ranks the reasons for replacing a working member. The replacement of a member that is too
// old may be just as outdated (ROLL-9), and still keeps the slot.
func (v *view) urgency(m *member) int {
	switch {
	case m.Record.Protected != "":
		return 0
	case m.age.rule != "" || m.rebalancedBy() != nil:
		return 2
	case v.outdated(m):
		return 1
	default:
		return 0
	}
}

// goesBefore reports which of two working members of a slot goes first.
func (v *view) goesBefore(m, other *member) bool { return v.urgency(m) > v.urgency(other) }

// leavingFor returns why a member leaves a slot that another one keeps.
func (v *view) leavingFor(m, keep *member) motive {
	by := m.rebalancedBy()
	switch {
	case v.outdated(m) && !v.outdated(keep):
		return motive{store.PurposeRoll, "ROLL-1", store.Cause{Kind: store.CauseOutdated}}
	case m.age.rule != "":
		return motive{store.PurposeAge, m.age.rule, m.age.cause}
	case by != nil && by == keep && by.Record.Converts:
		return motive{store.PurposeShares, "SPOT-4", of(store.CauseShares)}
	case by != nil && by == keep:
		return motive{store.PurposeZones, "REC-17", of(store.CauseEven)}
	case v.outdated(m): // so is the other, which is protected: nothing is updated by this
		return motive{store.PurposeSpare, "HEAL-6", store.Cause{Kind: store.CauseUnneeded, Other: keep.ID()}}
	default:
		return lostTooOften()
	}
}

// lostTooOften returns why a member leaves a slot whose instances come back and are lost again
// (DET-15).
func lostTooOften() motive {
	return motive{store.PurposeHeal, "DET-15", of(store.CauseLostTooOften)}
}

// keeper returns the member that keeps the slot, if one is healthy: the oldest, or the youngest
// once the slot's instances were lost too often (DET-15), and no outdated or expired member while
// there is another (HEAL-6).
func (d *settling) keeper(sl *slot, good []*member) *member {
	var keep *member
	for _, m := range good {
		switch {
		case !d.proven(m) || m.moving():
		case keep == nil, d.goesBefore(keep, m):
			keep = m
		case keep.Record.Protected == store.ProtectHeal:
		case d.flapsNow(sl.Record) && d.urgency(keep) == d.urgency(m):
			keep = m
		}
	}
	return keep
}

// release retires a member whose place another member keeps. That member is part of the evidence.
func (d *settling) release(m, keep *member, why motive, what store.EffectKind) *Action {
	blocker := d.budget.deletionBlocker
	if why.purpose == store.PurposeRoom {
		blocker = d.budget.givingWayBlocker
	}
	if m.touched || d.waits(m.task(store.WorkRemove), blocker(m)) {
		return nil
	}
	facts := append(slices.Clone(m.facts()),
		store.Fact{Kind: store.FactJudged, Name: keep.ID(), Cause: &keep.judgment.Cause})
	also := append(m.proof(d.s.Keys), keep.Unchanged(), store.At(d.s.Keys.Alive(keep.ID()), keep.Alive.Modified))
	if keep.Report.Present() {
		also = append(also, keep.Report.Unchanged())
	}
	return d.retire(m, why, what, facts, also...)
}

// releaseFailed does the same and counts the failure, if it was not counted when the replacement
// was requested.
func (d *settling) releaseFailed(sl *slot, m, keep *member, why motive) {
	if m.touched || sl.touched && !m.Record.Counted {
		return
	}
	if m.Record.Counted || m.unwantedOrdered() {
		d.release(m, keep, why, store.EffectDeleting)
		return
	}
	if d.waits(m.task(store.WorkRemove), d.budget.deletionBlocker(m)) {
		return
	}
	d.flapping.fail(sl, m)
	if a := d.release(m, keep, why, store.EffectDeleting); a != nil {
		d.writeSlot(a, sl)
	}
}

// followed adds to a cause which member keeps the slot. An order needs no further reason.
func followed(why store.Cause, add func(*store.CauseAlso)) store.Cause {
	if why.Kind == store.CauseOrder {
		return why
	}
	return with(why, add)
}

// forcedOut removes an instance past its forced age whose replacement has failed, within
// max_unavailable (EXP-2).
func (d *settling) forcedOut(sl *slot, good []*member) {
	old := good[0]
	if len(good) < 2 || !old.age.forced || old.touched || old.Record.Protected != "" || !d.booted(old) ||
		d.budget.unavailable() >= d.budget.boundsOf(d.spec.Budget.Expiry).down {
		return
	}
	tried := good[len(good)-1]
	if tried.phase != store.Creating || tried.Calls.Problem == "" || tried.Calls.Busy || sl.touched {
		return
	}
	what := old.task(store.WorkExpire)
	if d.waits(what, d.expiry.blocker(old)) || d.waits(what, d.budget.sharedBlocker(old)) ||
		d.waits(what, d.budget.deletionBlocker(old)) {
		return
	}
	why := old.age.cause
	why.Text = tried.Calls.Problem
	a := d.retire(old, motive{store.PurposeAge, old.age.rule, why}, store.EffectDeleting, old.facts(),
		old.proof(d.s.Keys)...)
	d.writeSlot(a, sl)
}
