package plan

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// flapping counts the failures of slots, and makes those that fail again and again wait.
type flapping struct{ *draft }

// note records that a failure makes a slot flap: the failed member stays as it is until the wait is
// over.
func (d *flapping) note(sl *slot, m *member) {
	rule := "FLAP-1"
	if sl.Record.Errored != "" {
		rule = "FLAP-3"
	}
	a := d.step(m, m.phase, rule, sl.waits().Effect(), m.judgment.Cause, m.facts(),
		func(r *store.Instance) { r.Counted = true })
	a.Conditions = append(a.Conditions, m.proof(d.s.Keys)...)
	d.writeSlot(a, sl)
}

// giveUp withdraws a creation that cannot succeed: the provider has refused it finally, the
// template is no longer wanted and the call fails, or it has failed for as long as DET-10 allows.
// That is no failure of the slot (HEAL-13).
func (d *healing) giveUp(m *member) {
	if m.Calls.NoRoom && m.phase == store.Creating && !m.touched && !m.Calls.Busy &&
		(m.Record.Converts || !d.zoning.withdrawRebalance(m)) {
		d.zoning.moveZone(m)
	}
	d.shares.fallBack(m)
	if m.touched || m.Calls.Busy || m.Calls.Problem == "" {
		return
	}
	why := store.Cause{Text: m.Calls.Problem}
	switch due := m.PhaseStart.Add(m.patience()); {
	case m.Calls.Refused:
		why.Kind = store.CauseCallRefused
		d.templates.refusedFallback(m)
	case d.templates.obsolete(m):
		why.Kind = store.CauseObsolete
	case m.phase == store.Creating && !d.now.Before(due):
		why.Kind, why.For = store.CauseNotMade, store.Duration(m.patience())
	default:
		d.wake(due)
		return
	}
	if !d.waits(m.task(store.WorkWithdraw), d.budget.deletionBlocker(m)) {
		d.retire(m, motive{store.PurposeHeal, "HEAL-13", why}, store.EffectWithdrawn, nil)
	}
}

// patience is how long a creation may keep failing before it is withdrawn to make room.
func (m *member) patience() time.Duration {
	if limit := m.Record.Spec.MaxChecking.D(); limit > 0 {
		return limit
	}
	return m.Record.Spec.RegistrationTimeout.D()
}

// maxFailures is how many failures a slot remembers: the maximum of flap.failures.
const maxFailures = 100

// fail counts a member's failure against its slot, once, and reports whether the slot now flaps and
// has to wait (FLAP-1, FLAP-2). The caller writes the slot.
func (d *flapping) fail(sl *slot, m *member) (wait bool) {
	if m.Record.Counted || m.Record.Condemned != nil || m.doom.rule != "" || m.Record.Drilled(d.now) {
		return sl.retry.After(d.now) || sl.Record.Errored != ""
	}
	f, rec := d.spec.Flap, &sl.Record
	rec.Template = d.hash
	failure := store.Failure{
		At: d.now.UTC(), Instance: m.ID(), Verdict: m.judgment.Verdict, Why: m.judgment.Why(),
		Cause:    reason.Recorded(m.judgment.Cause),
		Template: m.blames(),
	}
	if m.missed() {
		failure.LostSince = d.storms.lossCounts(m).UTC()
	}
	rec.Failures = append(append([]store.Failure(nil), rec.Failures...), failure)
	if extra := len(rec.Failures) - maxFailures; extra > 0 {
		rec.Failures = rec.Failures[extra:]
	}
	if rec.Flapping == 0 && !d.flapsNow(*rec) {
		return false
	}
	if rec.Flapping == 0 && f.GiveUpTime > 0 {
		t := d.timer(f.GiveUpTime.D())
		rec.GiveUp = &t
	}
	delay := d.delay(sl.number, rec.Flapping)
	rec.Flapping++
	t := d.timer(delay)
	rec.Retry = &t
	sl.retry = d.now.Add(delay)
	if failures := f.Failures + rec.Flapping - 1; f.GiveUpAfter > 0 && failures > f.GiveUpAfter {
		d.giveSlotUp(sl, store.Cause{Kind: store.CauseManyFailures, Count: failures, Limit: f.GiveUpAfter})
	}
	d.waits(m.task(store.WorkReplace), d.flaps(sl))
	return true
}

// blames returns the template that a member's failure counts against; "" if it says nothing about
// its template. As long as the provider has not restarted the machine, the template that the
// restart brings has not run; and what fails its checks as it did before it got its template shows
// only that the template is no fix (FLAP-5).
func (m *member) blames() string {
	notRun := m.awaitsRestart() && m.judgment.Verdict != store.Dead
	if notRun || m.Record.Ailing && m.failsChecks() {
		return ""
	}
	return m.Record.Template
}

// delay returns how long a slot waits after the given number of earlier waits: the wait doubles up
// to a limit, and noise keeps slots from retrying in step (FLAP-2).
func (v *view) delay(number, before int) time.Duration {
	f := v.spec.Flap
	delay := f.MinDelay.D()
	for i := 0; i < before && delay < f.MaxDelay.D(); i++ {
		delay *= 2
	}
	delay = min(delay, f.MaxDelay.D())
	noise := time.Duration((2*share(v.g.Name, fmt.Sprint(number), fmt.Sprint(before)) - 1) * float64(f.Noise.D()))
	return max(time.Second, (delay + noise).Round(100*time.Millisecond))
}

// giveSlotUp stops healing a slot until an operator orders a retry (FLAP-3).
func (d *flapping) giveSlotUp(sl *slot, why store.Cause) {
	sl.Record.ErroredCause, sl.Record.Errored = why, reason.Short(why)
	sl.Record.Retry, sl.Record.GiveUp = nil, nil
	sl.retry, sl.giveUp = time.Time{}, time.Time{}
}

// giveUpLong gives up the slots that have flapped for too long, unless they have a healthy
// instance.
func (d *flapping) giveUpLong() {
	for _, sl := range d.order {
		if sl.Record.GiveUp == nil || sl.Record.Errored != "" || sl.touched || sl.well > 0 {
			continue
		}
		if d.now.Before(sl.giveUp) {
			d.wake(sl.giveUp)
			continue
		}
		d.giveSlotUp(sl, store.Cause{Kind: store.CauseFlapsLong, For: d.spec.Flap.GiveUpTime})
		a := Action{
			Group: d.g.Name, Slot: &sl.number, Rule: "FLAP-3", Effect: effect(store.EffectSlotGivenUp), Why: sl.Record.Errored,
			Cause:          sl.Record.ErroredCause,
			Counterfactual: counterfactual("FLAP-3", ""),
			Conditions:     d.specUnchanged(),
		}
		d.writeSlot(&a, sl)
		d.actions = append(d.actions, a)
	}
}

// blocker returns why a slot may not be filled or healed now; nil if it may.
func (d *flapping) blocker(sl *slot) *blocker {
	if sl.Record.Errored == "" && !sl.retry.After(d.now) {
		return nil
	}
	return d.flaps(sl)
}

// givenUp returns why the slot is given up.
func (sl *slot) givenUp() store.Cause { return reason.Known(sl.Record.ErroredCause, sl.Record.Errored) }

// waits is the effect that a slot is not filled now, and for how long.
func (sl *slot) waits() store.SlotEffect {
	e := store.SlotEffect{Kind: store.EffectSlotWaits, Count: sl.number, Text: sl.Record.Errored}
	if r := sl.Record.Retry; r != nil {
		e.For = r.For
	}
	return e
}

// flapsNow reports whether so many failures are recent that the slot flaps.
func (v *view) flapsNow(rec store.Slot) bool {
	recent := 0
	for _, f := range rec.Failures {
		if age := v.now.Sub(f.At); age < v.spec.Flap.Window.D() && age > -time.Minute {
			recent++
		}
	}
	return recent >= v.spec.Flap.Failures
}

// flaps describes a slot that flaps or is given up as what blocks its work.
func (d *flapping) flaps(sl *slot) *blocker {
	if sl.Record.Errored != "" {
		return blocked("FLAP-3", store.BlockedByGivenUpSlot,
			store.BlockedFacts{Slot: sl.number, Cause: sl.givenUp()})
	}
	d.wake(sl.retry)
	of := store.BlockedFacts{Slot: sl.number, Count: len(sl.Record.Failures)}
	if sl.Record.Retry != nil {
		of.For = sl.Record.Retry.For
	}
	return blocked("FLAP-2", store.BlockedByFlapping, of)
}

// writeSlot adds the slot's record to an action. Every change of a slot's members compares and
// writes that record: two plans can never both fill a slot.
func (d *draft) writeSlot(a *Action, sl *slot) {
	sl.touched = true
	a.Conditions = append(a.Conditions, store.At(sl.Key, sl.Modified))
	a.Writes = append(a.Writes, store.Put(sl.Key, store.Encode(sl.Record)))
}
