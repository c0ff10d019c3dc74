package plan

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

// A group with capacity.spot consists of spot machines, which the provider may take away or may
// lack, and of machines on demand. The shares count the instances that will stay, one for each slot
// (SPOT-4).

// shares divides a group between spot machines and machines on demand.
type shares struct {
	*draft
	// the member that found no spot capacity in this plan, and the provider's words
	spotless, spotlessWhy string
}

// divided reports whether the group has shares of capacity.
func (v *view) divided() bool { return v.spec != nil && v.spec.Capacity.Spot > 0 }

// spot reports whether a member is a spot machine, or will be once this plan is carried out.
func (m *member) spot() bool { return m.Record.Spec.Spot && !m.fallsBack }

// isFallback reports whether the member is on demand because there was no spot capacity.
func (m *member) isFallback() bool { return m.Record.Fallback || m.fallsBack }

// countShares counts the slots whose instance will stay: spot machines, and others.
func (f *fleet) countShares() (spot, onDemand int) {
	f.spread() // which counts them
	return f.spots, f.counted - f.spots
}

// buy decides the capacity type of the next instance in a slot: spot, on demand, or on demand for
// lack of spot capacity. The on-demand share is filled first. An instance without a slot belongs to
// no share.
func (d *shares) buy(sl *slot) (spot, fallback bool) {
	if !d.divided() {
		return d.spec.Spot.Enabled, false
	}
	if sl == nil {
		return false, false
	}
	_, onDemand := d.countShares()
	if sl.counted && !sl.spot {
		onDemand--
	}
	if onDemand < d.spec.Capacity.OnDemand(d.spec.Size) {
		return false, false
	}
	if d.spotWait().After(d.now) && !d.spec.Capacity.Waits() {
		return false, true
	}
	return true, false
}

// spotWait returns until when spot machines are not tried; zero if they are.
func (d *shares) spotWait() time.Time {
	if s := d.g.Status.Record.Shares; s != nil {
		return d.ends(d.g.Due, store.TimerSpot, s.Wait)
	}
	return time.Time{}
}

// fallBack creates an instance on demand if there has been no spot capacity for
// capacity.fallback_after. An earlier call may have created a machine although its answer was lost:
// then the creation is withdrawn, and another one takes its place.
func (d *shares) fallBack(m *member) {
	if !d.divided() || m.touched || m.Calls.Busy || !m.Record.Spec.Spot || !m.Record.Managed ||
		m.phase != store.Pending && m.phase != store.Creating {
		return
	}
	c := d.spec.Capacity
	why, missing := d.spotMissing(m)
	if !missing || m.Record.Converts && d.withdrawConversion(m, why) || c.Waits() {
		return
	}
	if due := d.due(m.PhaseStart.Add(c.Patience())); d.now.Before(due) {
		d.wake(due)
		return
	}
	if m.Record.Called && !m.Calls.NothingMade {
		if !d.waits(m.task(store.WorkWithdraw), d.budget.deletionBlocker(m)) {
			d.noSpot(m, why)
			d.retire(m, motive{
				store.PurposeShares, "SPOT-4", store.Cause{Kind: store.CauseNoSpot, For: store.Duration(c.Patience())},
			}, store.EffectWithdrawn, inWords(why))
		}
		return
	}
	d.noSpot(m, why)
	m.fallsBack = true
	spec := m.Record.Spec
	spec.Spot = false
	zone := d.zoning.zoneFor(m.slot, &spec)
	a := d.step(m, m.Record.Phase, "SPOT-4", effect(store.EffectMadeOnDemand),
		store.Cause{Kind: store.CauseNoSpot, For: store.Duration(c.Patience())}, inWords(why), func(r *store.Instance) {
			r.Spec.Spot, r.Fallback, r.Rebalances, r.Converts, r.Zone = false, true, false, false, zone
		})
	a.Conditions = append(a.Conditions, d.common()...)
	m.movesTo = zone
	d.countZone(m.slot)
}

// spotMissing reports whether a creation found no spot capacity, and the provider's words.
func (d *shares) spotMissing(m *member) (why string, missing bool) {
	if of, r, refused := d.refusal(m); refused && of.Spot {
		return r.Why, true
	}
	return m.Calls.Problem, m.Calls.NoSpot
}

// noSpot records for the status that a member found no spot capacity.
func (d *shares) noSpot(m *member, why string) { d.spotless, d.spotlessWhy = m.ID(), why }

// withdrawConversion withdraws a replacement that was to be a spot machine. It returns false if the
// replacement is needed because the instance that it replaces no longer works.
func (d *shares) withdrawConversion(m *member, why string) bool {
	if len(d.others(m, usable)) == 0 || d.waits(m.task(store.WorkWithdraw), d.budget.deletionBlocker(m)) {
		return false
	}
	d.noSpot(m, why)
	d.retire(m, motive{store.PurposeShares, "SPOT-4", of(store.CauseNoSpotServes)}, store.EffectWithdrawn, inWords(why))
	return true
}

// convert brings the shares of a group to what is wanted, one instance at a time: fallbacks return
// to spot, and the group follows changed shares. This is planned work: it begins only when no other
// work is due, creates the replacement first, and yields to healing.
func (d *shares) convert() {
	if !d.divided() {
		return
	}
	from, off := d.offShare()
	if !off || d.rebalancing() {
		return
	}
	what := task{work: store.WorkToSpot}
	if from {
		what.work = store.WorkToOnDemand
	}
	wait, shut := d.spotWait(), d.windows.blocker(store.PlannedRebalance)
	switch {
	case d.waits(what, shut):
	case !from && wait.After(d.now):
		d.wake(wait)
		s := d.g.Status.Record.Shares
		d.block("SPOT-4", what, store.BlockedByNoSpot, store.BlockedFacts{Count: s.Fallback, Text: s.Why, For: s.Wait.For})
	case d.roll.rollout != nil && d.spec.Rollout.Strategy == store.StrategyProactive:
		d.block("SPOT-4", what, store.BlockedByRoll, store.BlockedFacts{})
	case !d.budget.allWell() || !d.settledDown():
		d.block("SPOT-4", what, store.BlockedByUnsettled, store.BlockedFacts{})
	case d.spec.MaxExpansion() == 0:
		d.block("SPOT-4", what, store.BlockedByNoExpansion, store.BlockedFacts{})
	case !d.waits(what, d.budget.additionBlocker()):
		d.convertOne(from, what)
	}
}

// offShare reports whether the shares are off, and which type is in surplus. Fallbacks stay if
// capacity.return_after is 0.
func (d *shares) offShare() (spot, off bool) {
	spots, onDemand := d.countShares()
	wanted := d.spec.Capacity.OnDemand(d.spec.Size)
	if d.spec.Capacity.Return() == 0 {
		onDemand -= d.fallbacks()
	}
	switch {
	case onDemand > wanted && spots < d.spec.Size-wanted:
		return false, true
	case onDemand < wanted && spots > d.spec.Size-wanted:
		return true, true
	default:
		return false, false
	}
}

// fallbacks returns how many of the staying instances are on demand because there was no spot
// capacity.
func (f *fleet) fallbacks() int {
	n := 0
	for _, sl := range f.order {
		if m := sl.stays(); m != nil && m.isFallback() {
			n++
		}
	}
	return n
}

// convertOne replaces one instance: a fallback if there is one, else the oldest.
func (d *shares) convertOne(spot bool, what task) {
	var m *member
	for _, sl := range d.order {
		for _, o := range sl.members {
			if o.spot() == spot && d.movable(sl, o) && (m == nil || d.movesBefore(o, m, before)) {
				m = o
			}
		}
	}
	if m == nil {
		d.block("SPOT-4", what, store.BlockedByProtectedShare, store.BlockedFacts{})
		return
	}
	why := of(store.CauseTooManySpot)
	if !spot {
		why = store.Cause{
			Kind: store.CauseTooFewSpot, Count: d.spots, Limit: d.spec.Size - d.spec.Capacity.OnDemand(d.spec.Size),
		}
	}
	a := d.step(m, m.phase, "SPOT-4", effect(store.EffectReplaced), why, m.facts(), nil)
	a.Conditions = append(a.Conditions, d.common()...)
	d.addReplacement(a, m.slot, m, motive{store.PurposeShares, "SPOT-4", why})
	d.writeSlot(a, m.slot)
}

// before orders instances by how soon they are converted.
func before(a, b *member) bool {
	if a.isFallback() != b.isFallback() {
		return a.isFallback()
	}
	return older(a, b)
}

// movable reports whether an instance may be replaced only to improve the group's shape.
func (v *view) movable(sl *slot, m *member) bool {
	return m.Record.Protected == "" && m.healthy() && !sl.retry.After(v.now) && sl.Record.Errored == ""
}

// follow updates the status of the shares, including the record of missing spot capacity: the wait
// for the next try doubles each time.
func (d *shares) follow() *store.Shares {
	if !d.divided() || d.spec.Deleting || d.spec.Stopped || d.spec.Unstarted {
		return nil
	}
	var now store.Shares
	if old := d.g.Status.Record.Shares; old != nil {
		now = *old
	}
	now.Spot, now.OnDemand = d.countShares()
	now.Fallback, now.Wanted = d.fallbacks(), d.spec.Size-d.spec.Capacity.OnDemand(d.spec.Size)
	waits := d.spotWait().After(d.now)
	switch id, why := d.lastSpotless(now.Last); {
	case id != "" && !waits:
		now.Failed++
		now.Last, now.Why, now.Wait = id, why, nil
		if back := d.spec.Capacity.Return(); back > 0 {
			t := d.timer(min(back<<min(now.Failed-1, 10), store.MaxReturnAfter))
			now.Wait = &t
		}
	case waits:
	case now.Fallback == 0 || d.converted():
		now.Failed, now.Why, now.Wait = 0, "", nil
	}
	return &now
}

// lastSpotless returns the instance that found no spot capacity in this plan, or whose conversion
// was withdrawn in an earlier one, and why; "" if there is none besides the recorded one.
func (d *shares) lastSpotless(known string) (id, why string) {
	if d.spotless != "" && d.spotless != known {
		return d.spotless, d.spotlessWhy
	}
	for _, m := range d.members {
		last := &m.Record.Last
		if m.Record.Converts && m.Record.Spec.Spot && m.phase == store.Deleting && m.ID() != known &&
			(last.Cause.Kind == store.CauseNoSpot || last.Cause.Kind == store.CauseNoSpotServes) {
			return m.ID(), last.Why
		}
	}
	return "", ""
}

// converted reports whether an instance that was to return to spot works.
func (d *shares) converted() bool {
	for _, m := range d.members {
		if m.Record.Converts && m.Record.Spec.Spot && m.fills() && d.proven(m) {
			return true
		}
	}
	return false
}
