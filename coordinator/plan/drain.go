package plan

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// drains continues the drains of members.
type drains struct{ *draft }

// retire starts the removal of a member: it drains if there is something to wait for, otherwise it
// is deleted, which cannot be undone (DRAIN-1, HEAL-14).
func (d *draft) retire(m *member, why motive, what store.EffectKind, facts []store.Fact,
	also ...store.Condition,
) *Action {
	var a *Action
	length, ok := d.drainTime(m)
	if patience := d.busyTime(m, why.purpose); ok || patience > 0 {
		if what == store.EffectDeleting {
			what = store.EffectDraining
		}
		rec := store.Drain{
			Token: d.unique(m.ID()), Rule: why.rule, Why: reason.Short(why.cause), Cause: reason.Recorded(why.cause),
			Timer: d.timer(length),
			Lost:  m.judgment.Verdict == store.Lost && m.Record.Condemned == nil,
		}
		if m.inTraffic() && len(m.Record.Spec.Drain.Hook) > 0 {
			rec.Token = "" // leaveTraffic notifies its agent, once its load balancers send no new connections
		}
		if patience > 0 {
			t := d.timer(patience)
			rec.Busy = &t
		}
		a = d.step(m, store.Draining, why.rule, effect(what), why.cause, facts,
			func(r *store.Instance) { r.Drain, r.Leaves = &rec, why.purpose })
	} else {
		a = d.step(m, store.Deleting, why.rule, effect(what), why.cause, facts,
			func(r *store.Instance) { r.Leaves = why.purpose })
	}
	a.Conditions = append(a.Conditions, d.common()...)
	a.Conditions = append(a.Conditions, also...)
	return a
}

// drainTime returns how long a member may drain. It returns false if there is nothing to wait for:
// the member is dead, has never served, or has neither a hook nor load balancers. A member whose
// machine will end by a notice keeps serving even without a hook, until its replacement serves or
// the notice's time is over (SPOT-2).
func (v *view) drainTime(m *member) (time.Duration, bool) {
	hook, length := m.Record.Spec.Drain.Hook, m.Record.Spec.Drain.Timeout.D()
	served := m.phase == store.Running || m.phase == store.Checking || m.phase == store.Stopping ||
		m.phase == store.Starting
	if m.dead() || !served {
		return 0, false
	}
	if m.noticed() {
		left := length // otherwise its end is unknown
		if !m.doom.by.IsZero() {
			left = max(0, m.doom.by.Sub(v.now))
			if (len(hook) > 0 || m.inTraffic()) && length > 0 {
				left = min(length, left)
			}
		}
		return left, left > 0
	}
	return length, (len(hook) > 0 || m.inTraffic()) && length > 0
}

// relieved ends a drain without a hook once a healthy instance has taken the member's place: there
// is nothing else to wait for.
func (d *drains) relieved(m *member) bool {
	if len(m.Record.Spec.Drain.Hook) > 0 || len(m.Record.Traffic) > 0 && !m.noticed() || !d.traffic.trafficEnded(m) {
		return false
	}
	heirs := d.others(m, d.proven)
	if len(heirs) == 0 {
		return false
	}
	a := d.drained(m, "SPOT-2", store.Cause{Kind: store.CauseRelieved, Other: heirs[0].ID()})
	a.Conditions = append(a.Conditions, heirs[0].Unchanged(), heirs[0].Alive.Unchanged(), heirs[0].Report.Unchanged())
	return true
}

// follow continues drains. A drain ends with its hook, with an acknowledgement, with its timer, or
// with the machine's death. An instance that was only lost returns if its agent does (DET-15).
func (d *drains) follow() {
	for _, m := range d.members {
		if m.Record.Phase != store.Draining || m.touched {
			continue
		}
		rec := m.Record.Drain
		if rec == nil {
			rec = &store.Drain{Rule: m.Record.Last.Rule, Why: m.Record.Last.Why, Cause: m.Record.Last.Cause}
		}
		due := d.ends(m.Due, store.TimerDrain, &rec.Timer)
		switch {
		case m.dead():
			d.drained(m, "DET-4", m.judgment.Cause)
		case d.comesBack(m, rec):
		case rec.Lost && m.working() && m.Alive.Present() && m.Alive.Record.State == store.StreamOpen:
			d.drainsAfterAll(m)
		case d.traffic.leaveTraffic(m, rec, due):
		case d.finish(m, rec):
		case d.relieved(m):
		case rec.Done != "":
			d.drained(m, "DRAIN-1", store.Cause{Kind: store.CauseDrained, Text: rec.Done})
		case rec.Token != "" && len(m.Record.Spec.Drain.Hook) > 0 && m.Alive.Present() &&
			m.Report.Record.Drained == rec.Token && d.traffic.trafficEnded(m):
			// without a timer, the record has no end
			a := d.drained(m, "DRAIN-1", of(store.CauseHookEnded))
			a.Conditions = append(a.Conditions, m.Report.Unchanged())
		case len(m.Record.Spec.Drain.Hook) == 0 && m.inTraffic() && d.traffic.trafficEnded(m):
			d.drained(m, "LB-1", of(store.CauseNoConnections))
		case !d.now.Before(due):
			d.drained(m, "DRAIN-1", store.Cause{Kind: store.CauseDrainTime, For: rec.Timer.For})
		case d.traffic.blockTraffic("LB-1", m.task(store.WorkRemove), m, rec.Timer.For):
			d.wake(due)
		default:
			d.wake(due)
			d.block("DRAIN-1", m.task(store.WorkRemove), store.BlockedByDrain,
				store.BlockedFacts{
					Cause: reason.Known(rec.Cause, rec.Why), For: rec.Timer.For,
					Flag: len(m.Record.Spec.Drain.Hook) > 0,
				})
		}
	}
}

func (d *drains) drained(m *member, rule string, why store.Cause) *Action {
	why = with(why, func(a *store.CauseAlso) { a.Left = drainedFor(m) })
	a := d.step(m, store.Deleting, rule, effect(store.EffectDeleting), why, m.facts(), nil)
	a.Conditions = append(append(a.Conditions, d.common()...), m.proof(d.s.Keys)...)
	return a
}

func drainedFor(m *member) string {
	if m.Record.Drain != nil {
		return m.Record.Drain.Why
	}
	return m.Record.Last.Why
}

// comesBack restores a lost instance once its agent reports again, unless its slot is better off
// without it.
func (d *drains) comesBack(m *member, rec *store.Drain) bool {
	if !rec.Lost || !m.working() || !m.Alive.Present() || m.Alive.Record.State != store.StreamOpen || m.unwanted() ||
		d.spec == nil || d.spec.Deleting || d.spec.Stopped {
		return false
	}
	if m.slot == nil || m.slot.touched || d.flapsNow(m.slot.Record) || d.templates.obsolete(m) || m.age.rule != "" {
		return false
	}
	to := store.Checking
	if reportIsCurrent(m.Instance) && m.Report.Record.Healthy {
		to = store.Running
	}
	a := d.step(m, to, "DET-15", effect(store.EffectCameBack), of(store.CauseAgentBack), m.facts(),
		func(r *store.Instance) { r.Drain, r.Leaves = nil, "" })
	a.Conditions = append(a.Conditions, m.Alive.Unchanged())
	if m.Report.Present() {
		a.Conditions = append(a.Conditions, m.Report.Unchanged())
	}
	return true
}

// drainsAfterAll drains a lost instance that came back and is no longer wanted. Until now its agent
// was not notified.
func (d *drains) drainsAfterAll(m *member) {
	if m.slot != nil && m.slot.touched {
		return // decided on the next cache
	}
	a := d.step(m, store.Draining, "DRAIN-1", effect(store.EffectDrains),
		of(store.CauseCameBack),
		m.facts(), func(r *store.Instance) {
			drain := *r.Drain
			drain.Lost = false
			drain.Timer = d.timer(drain.Timer.For.D()) // its agent is notified only now
			r.Drain = &drain
		})
	a.Conditions = append(a.Conditions, m.Alive.Unchanged())
}

// draining names the members that are leaving a slot, so that the journal says which one a new
// member replaces.
func draining(sl *slot) string {
	i := slices.IndexFunc(sl.members, func(m *member) bool { return !m.phase.Fills() || m.dead() })
	if i < 0 {
		return ""
	}
	return sl.members[i].ID()
}
