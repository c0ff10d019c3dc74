package plan

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

// What is planned takes instances first that do not work for anyone now, and waits for the others
// once they were chosen: until they are idle, for busy.timeout at most (BUSY-1). Healing, notices
// and orders wait for no workload.

// idleAfter is how long after the drain of an instance has begun its agent's word that the workload
// is idle counts: it took new work until then, and the check is done every two seconds.
const idleAfter = 5 * time.Second

// asksBusy reports whether the group's agents are asked whether the workload is busy.
func (v *view) asksBusy() bool { return v.spec != nil && v.spec.Busy.BusyProbe != (store.BusyProbe{}) }

// isIdle reports whether a member's workload is known to be idle. What is not known counts as busy.
func (v *view) isIdle(m *member) bool {
	return m.Alive.Present() && m.Alive.Record.State == store.StreamOpen && reportIsCurrent(m.Instance) &&
		m.Report.Record.Idle()
}

// busyRank orders members by whether planned work takes them first: those that are idle.
func (v *view) busyRank(m *member) int {
	if v.asksBusy() && !v.isIdle(m) {
		return 1
	}
	return 0
}

// busyTime is how long a member that goes for a purpose has to become idle; 0 if that is not waited
// for.
func (v *view) busyTime(m *member, why store.Purpose) time.Duration {
	if !v.asksBusy() || !why.Planned() || m.unwanted() || !m.healthy() {
		return 0
	}
	return v.spec.Busy.Patience()
}

// finishes goes on with a drain that waits until the workload is idle; false if nothing is to be
// waited for any more, or if what else it waits for decides.
func (d *drains) finishes(m *member, rec *store.Drain) bool {
	if rec.Busy == nil || rec.Done != "" {
		return false
	}
	ends, told := d.ends(m.Due, store.TimerBusy, rec.Busy), d.due(m.PhaseStart.Add(idleAfter))
	free := !d.now.Before(told) && d.isIdle(m)
	over := !d.now.Before(ends) || m.failing() || m.doom.rule != ""
	if !free && !over {
		d.wake(told)
		d.wake(ends)
		d.block("BUSY-1", m.task(store.WorkRemove), store.BlockedByBusy,
			store.BlockedFacts{For: rec.Busy.For, Opens: ends.UTC().Truncate(time.Second)})
		return true
	}
	if len(m.Record.Spec.Drain.Hook) > 0 || m.inTraffic() {
		return false
	}
	why := of(store.CauseIdle)
	if !free {
		why = store.Cause{Kind: store.CauseBusyTime, For: rec.Busy.For}
	}
	a := d.drained(m, "BUSY-1", why)
	if m.Report.Present() && free {
		a.Conditions = append(a.Conditions, m.Report.Unchanged())
	}
	return true
}

// awaitsIdle has a restart in place, as planned, wait until the workload is idle, and reports
// whether it does.
func (d *roll) awaitsIdle(m *member, why store.Cause) bool {
	if !d.asksBusy() || !m.healthy() || d.isIdle(m) || d.spec.Busy.Patience() == 0 {
		return false
	}
	w := m.Record.Awaits
	if w == nil || w.Template != d.hash || w.Relaunch != d.spec.Relaunch.Number {
		awaits := store.Awaits{
			Template: d.hash, Relaunch: d.spec.Relaunch.Number, Timer: d.timer(d.spec.Busy.Patience()),
		}
		d.step(m, m.phase, "BUSY-1", effect(store.EffectRestartWhen), why, m.facts(),
			func(r *store.Instance) { r.Awaits = &awaits })
		return true
	}
	ends := d.ends(m.Due, store.TimerAwaits, &w.Timer)
	if !d.now.Before(ends) {
		return false
	}
	d.wake(ends)
	d.block("BUSY-1", m.task(store.WorkRestart), store.BlockedByBusy,
		store.BlockedFacts{For: w.Timer.For, Opens: ends.UTC().Truncate(time.Second)})
	return true
}

// movesBefore orders members that may be moved for the sake of the group's shape: those that are
// idle first.
func (v *view) movesBefore(a, b *member, order func(a, b *member) bool) bool {
	if x, y := v.busyRank(a), v.busyRank(b); x != y {
		return x < y
	}
	return order(a, b)
}

// finishing is how many machines are there only until their workloads are idle. Healing does not
// wait for the room that they take (BUSY-1).
func (d *budget) finishing() int {
	if !d.asksBusy() {
		return 0
	}
	n := 0
	for _, m := range d.members {
		if m.Record.Managed && m.phase == store.Draining && m.Record.Drain != nil && m.Record.Drain.Busy != nil {
			n++
		}
	}
	return n
}
