package plan

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// progress moves instances to the phase that the evidence shows.
type progress struct{ *draft }

// follow moves instances to the phase that the evidence shows. It destroys nothing and needs no
// budget, so it continues while the group is paused or the shard on hold.
func (d *progress) follow() {
	for _, m := range d.members {
		switch m.Record.Phase {
		case store.Creating:
			d.created(m)
		case store.Booting:
			d.registered(m)
		case store.Stopping:
			d.stopped(m)
		case store.Starting:
			d.started(m)
		case store.Checking:
			if !d.finished(m) {
				d.healthyNow(m)
			}
		case store.Running:
			if !d.finished(m) && !d.rebooted(m) {
				d.forgetOldFailures(m)
			}
		default: // other deciders continue these
		}
		if m.Record.Phase != store.Deleting {
			d.endProtection(m)
			d.recordNotice(m)
			d.locate(m)
		}
	}
}

// finished handles a task whose workload has ended with success (REC-12).
func (d *progress) finished(m *member) bool {
	if !m.Alive.Present() || !endedWell(m.Instance) {
		return false
	}
	a := d.step(m, store.Finished, "REC-12", effect(store.EffectFinished), of(store.CauseExitZero),
		[]store.Fact{reportIs(m.Instance)}, nil)
	a.Conditions = append(a.Conditions, m.Report.Unchanged())
	return true
}

// created handles an instance whose machine the provider has created.
func (d *progress) created(m *member) {
	switch {
	case m.Calls.Made:
		d.step(m, store.Booting, "SAFE-8", effect(store.EffectMachineExists), of(store.CauseMadeBy),
			[]store.Fact{{Kind: store.FactMachine, Text: m.Calls.Ref}}, func(r *store.Instance) {
				r.Ref, r.Address = m.Calls.Ref, m.Calls.Address
			})
	case m.Sighting.Listed && !m.Calls.Busy: // a call under way will soon say more
		d.step(m, store.Booting, "ELECT-3", effect(store.EffectMachineExists), of(store.CauseListedBy),
			[]store.Fact{providerSays(m.Instance)}, func(r *store.Instance) {
				r.Ref, r.Address = m.Sighting.Ref, m.Sighting.Address
			})
	}
}

// registered handles an instance whose agent holds a lease.
func (d *progress) registered(m *member) {
	if !m.Alive.Present() || m.AliveUnreadable != "" {
		return
	}
	a := d.step(m, store.Checking, "DET-11", effect(store.EffectRegistered), d.after(m),
		[]store.Fact{streamSays(m.Instance)}, nil)
	a.Conditions = append(a.Conditions, m.Alive.Unchanged())
}

// healthyNow handles an instance that reports, and whose checks pass.
func (d *progress) healthyNow(m *member) {
	if !m.Alive.Present() || m.Alive.Record.State != store.StreamOpen || !reportIsCurrent(m.Instance) ||
		!m.Report.Record.Healthy {
		return
	}
	if !m.working() || !restartConfirmed(m.Instance) {
		return
	}
	if d.traffic.opens(m) {
		return
	}
	why := passed(m.Report.Record.Checks)
	why.For = store.Duration(d.since(m))
	if m.Record.Restart != nil {
		why.Text = store.PassedAgain
	}
	a := d.step(m, store.Running, "DET-9", effect(store.EffectHealthy), why,
		[]store.Fact{streamSays(m.Instance), reportIs(m.Instance)},
		func(r *store.Instance) {
			r.Restart, r.Boot, r.Traffic = nil, m.Alive.Record.BootID, d.traffic.opened(m)
			r.Ailing = r.Ailing && m.updating() // else it works with its template
		})
	a.Conditions = append(a.Conditions, m.Alive.Unchanged(), m.Report.Unchanged())
}

// rebooted handles a machine that has started again by itself. Like after an ordered restart, the
// new boot has time to become healthy; the state before it no longer counts.
func (d *progress) rebooted(m *member) bool {
	if !rebooted(m.Instance) || m.dead() {
		return false
	}
	a := d.step(m, store.Checking, "DET-10", effect(store.EffectRebooted),
		of(store.CauseBootUnordered), []store.Fact{streamSays(m.Instance)}, nil)
	a.Conditions = append(a.Conditions, m.Alive.Unchanged())
	return true
}

// passed returns the checks that a healthy instance passed: all that count, and the results of
// optional ones.
func passed(checks []store.CheckReport) store.Cause {
	why := store.Cause{Kind: store.CausePassed}
	if len(checks) > 0 {
		why.Name = "checks"
	}
	for _, c := range checks {
		switch {
		case c.Name == store.IdleCheck:
		case !c.Optional:
			why.Count++
		case !c.Healthy:
			why.Limit++
		}
	}
	return why
}

// locate records a machine's address. Some providers know it only after the boot, or report another
// one after a reboot; the address of an adopted machine is unknown at first as well.
func (d *progress) locate(m *member) {
	see := &m.Sighting
	if m.touched || !see.Listed || see.Down || see.Address == "" || see.Address == m.Record.Address ||
		!m.phase.Registered() && m.phase != store.Booting {
		return
	}
	a := d.step(m, m.phase, "DET-12", named(store.EffectAddress, see.Address), of(store.CauseListedThere),
		[]store.Fact{providerSays(m.Instance)}, func(r *store.Instance) {
			r.Address, r.Last = see.Address, m.Record.Last
		})
	a.NoJournal = m.Record.Address == ""
}

// forgetOldFailures forgets the failures of a slot whose instance has been healthy for long enough
// (FLAP-4).
func (d *progress) forgetOldFailures(m *member) {
	if !m.Record.Managed || !m.healthy() {
		return
	}
	if m.Record.Counted {
		d.recovered(m)
		return
	}
	sl := m.slot
	if d.spec == nil || len(sl.Record.Failures) == 0 || sl.touched || d.othersFailedHere(m) {
		return
	}
	if due := d.forgetFrom(m, sl); d.now.Before(due) {
		d.wake(due)
		return
	}
	d.forget(sl, "FLAP-4", store.Cause{Kind: store.CauseCalm, Other: m.ID(), For: d.spec.Flap.Reset}, m.Unchanged())
}

// othersFailedHere reports whether a member has to go and others, made from the wanted template,
// have failed in its place: a healthy old member proves nothing about the new ones (FLAP-2,
// FLAP-5).
func (d *progress) othersFailedHere(m *member) bool {
	if !d.leaving(m) && !m.unwantedOrdered() {
		return false
	}
	return slices.ContainsFunc(m.slot.Record.Failures,
		func(f store.Failure) bool { return f.Template == d.hash && f.Instance != m.ID() })
}

// forget resets a slot.
func (d *progress) forget(sl *slot, rule string, why store.Cause, also ...store.Condition) *Action {
	rec := &sl.Record
	rec.Failures, rec.Retry, rec.GiveUp, rec.Flapping = nil, nil, nil, 0
	rec.Errored, rec.ErroredCause = "", store.Cause{}
	sl.retry, sl.giveUp = time.Time{}, time.Time{}
	a := Action{
		Group: d.g.Name, Slot: &sl.number, Rule: rule, Effect: effect(store.EffectSlotForgets),
		Why: reason.Short(why), Cause: reason.Recorded(why), Conditions: also,
	}
	d.writeSlot(&a, sl)
	d.actions = append(d.actions, a)
	return &d.actions[len(d.actions)-1]
}

// forgetFrom returns since when a member counts as healthy for flap.reset: since it runs, and since
// the last failure of its slot, which may have been its own. A failure that a wrong clock dated
// into the future does not count.
func (d *progress) forgetFrom(m *member, sl *slot) time.Time {
	reset := d.spec.Flap.Reset.D()
	due := m.PhaseStart.Add(reset)
	for _, f := range sl.Record.Failures {
		if at := f.At.Add(reset); at.After(due) && d.now.Sub(f.At) > -time.Minute {
			due = at
		}
	}
	return due
}

// recovered clears the mark that its failure was counted: the next failure is a new one (FLAP-1).
func (d *progress) recovered(m *member) {
	a := d.step(m, m.phase, "HEAL-6", effect(store.EffectRecovered), m.judgment.Cause, m.facts(),
		func(r *store.Instance) {
			r.Counted = false
			r.Ailing = r.Ailing && m.updating()
		})
	a.Conditions = append(a.Conditions, m.Alive.Unchanged(), m.Report.Unchanged())
}

// after says how long a member was in its phase.
func (v *view) after(m *member) store.Cause {
	return store.Cause{Kind: store.CauseAfter, For: store.Duration(v.since(m))}
}

func (v *view) since(m *member) time.Duration {
	return v.now.Sub(m.PhaseStart).Round(100 * time.Millisecond)
}

// recordNotice records a notice, or an agent's report that its machine must be evacuated: the
// source may be gone in a moment. A provider's notice overrides an evacuation, since it leaves less
// time.
func (d *progress) recordNotice(m *member) {
	if m.touched || m.noticed() || !m.phase.Registered() && m.phase != store.Booting {
		return
	}
	n := m.Report.Record.Notice
	if !m.Alive.Present() || !reportIsCurrent(m.Instance) {
		n = nil
	}
	switch {
	case n != nil && n.Kind != store.NoticeEvacuating:
		why := store.Cause{Kind: store.CauseNotice, Text: n.Why}
		rec := store.Doom{Rule: "SPOT-2", Why: reason.Short(why), Cause: why, At: d.now.UTC()}
		if n.In > 0 {
			t := d.timer(n.In.D())
			rec.Deadline = &t
		}
		a := d.step(m, m.phase, "SPOT-2", effect(store.EffectDoomed), why,
			[]store.Fact{reportIs(m.Instance), {Kind: store.FactNotice, Name: n.Kind}},
			func(r *store.Instance) { r.Doomed = &rec })
		a.Conditions = append(a.Conditions, m.Report.Unchanged())
	case m.Record.Doomed != nil:
	case n != nil:
		a := d.evacuated(m, n.Why, reportIs(m.Instance))
		a.Conditions = append(a.Conditions, m.Report.Unchanged())
	case m.Alive.Present() && m.Alive.Record.State == store.StreamLeft &&
		m.Alive.Record.Goodbye == store.GoodbyeEvacuating:
		a := d.evacuated(m, m.Alive.Record.Why, streamSays(m.Instance))
		a.Conditions = append(a.Conditions, m.Alive.Unchanged())
	}
}

// evacuated records that a member's machine must be evacuated (DRAIN-3).
func (d *progress) evacuated(m *member, text string, on store.Fact) *Action {
	why := store.Cause{Kind: store.CauseEmptied, Text: text}
	return d.step(m, m.phase, "DRAIN-3", effect(store.EffectDoomed), why, []store.Fact{on}, func(r *store.Instance) {
		r.Doomed = &store.Doom{Rule: "DRAIN-3", Why: reason.Short(why), Cause: why, At: d.now.UTC()}
	})
}
