package plan

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

// Planned work takes idle instances first. A busy instance that was chosen is given time to become
// idle, at most busy.timeout (BUSY-1). Healing, notices and orders do not wait for workloads.

// idleAfter is how long after the start of a drain the agent's report of an idle workload begins to
// count: until then the workload took new work, and the check runs every two seconds.
const idleAfter = 5 * time.Second

// asksBusy reports whether the group's agents are asked whether the workload is busy.
func (v *view) asksBusy() bool { return v.spec != nil && v.spec.Busy.BusyProbe != (store.BusyProbe{}) }

// isIdle reports whether a member's workload is known to be idle. Unknown counts as busy.
func (v *view) isIdle(m *member) bool {
	return m.Alive.Present() && m.Alive.Record.State == store.StreamOpen && reportIsCurrent(m.Instance) &&
		m.Report.Record.Idle()
}

// busyRank orders members for planned work: idle ones first.
func (v *view) busyRank(m *member) int {
	if v.asksBusy() && !v.isIdle(m) {
		return 1
	}
	return 0
}

// busyTime returns how long a member that leaves for a purpose may take to become idle; 0 if
// nothing waits for that.
func (v *view) busyTime(m *member, why store.Purpose) time.Duration {
	if !v.asksBusy() || !why.Planned() || m.unwanted() || !m.healthy() {
		return 0
	}
	return v.spec.Busy.Patience()
}

// finish continues a drain that waits until the workload is idle. It returns false if that wait
// is over, or if other conditions decide.
func (d *drains) finish(m *member, rec *store.Drain) bool {
	if rec.Busy == nil || rec.Done != "" {
		return false
	}
	ends, from := d.ends(m.Due, store.TimerBusy, rec.Busy), d.due(m.PhaseStart.Add(idleAfter))
	free := !d.now.Before(from) && d.isIdle(m)
	over := !d.now.Before(ends) || m.failing() || m.doom.rule != ""
	if !free && !over {
		d.wake(from)
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

// awaitIdle makes a planned restart in place wait until the workload is idle, and reports whether
// it does.
func (d *roll) awaitIdle(m *member, why store.Cause) bool {
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

// movesBefore orders members for moves that only improve the group's shape: idle ones first.
func (v *view) movesBefore(a, b *member, order func(a, b *member) bool) bool {
	if x, y := v.busyRank(a), v.busyRank(b); x != y {
		return x < y
	}
	return order(a, b)
}

// finishing returns how many machines exist only until their workloads are idle. Healing does not
// wait for their room (BUSY-1).
func (d *budget) finishing() int {
	if !d.asksBusy() {
		return 0
	}
	n := 0
	for _, m := range d.members {
		if d.finishes(m) {
			n++
		}
	}
	return n
}

// finishes reports whether a member's machine exists only until its workload is idle.
func (v *view) finishes(m *member) bool {
	return v.asksBusy() && m.Record.Managed && m.phase == store.Draining && m.Record.Drain != nil &&
		m.Record.Drain.Busy != nil
}
