package plan

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
)

// progress takes instances to the phase that the facts show. It destroys nothing and needs no budget, so it goes on
// while the group is paused or the shard on hold.
func (d *draft) progress() {
	for _, m := range d.members {
		switch m.Record.Phase {
		case store.Creating:
			d.created(m)
		case store.Booting, store.Starting:
			d.registered(m)
		case store.Checking:
			d.healthyNow(m)
		case store.Running:
			d.remember(m)
		default: // goes on by what others decide
		}
	}
}

// created: the provider has the machine.
func (d *draft) created(m *member) {
	switch {
	case m.Calls.Made:
		d.step(m, store.Booting, "SAFE-8", "machine exists", "the provider made it", []string{"provider ref " + m.Calls.Ref}, func(r *store.Instance) {
			r.Ref, r.Address = m.Calls.Ref, m.Calls.Address
		})
	case m.Sighting.Listed && !m.Calls.Busy: // a call that is under way says more, and soon
		d.step(m, store.Booting, "ELECT-3", "machine exists", "the provider lists it", []string{providerSays(m.Sighting)}, func(r *store.Instance) {
			r.Ref, r.Address = m.Sighting.Ref, m.Sighting.Address
		})
	}
}

// registered: its agent holds a lease.
func (d *draft) registered(m *member) {
	if !m.Alive.Present() {
		return
	}
	a := d.step(m, store.Checking, "DET-11", "agent registered", fmt.Sprintf("after %s", d.since(m)), []string{streamSays(m.Instance)}, nil)
	a.Conditions = append(a.Conditions, m.Alive.Unchanged())
}

// healthyNow: it reports, and its checks pass.
func (d *draft) healthyNow(m *member) {
	if !m.Alive.Present() || m.Alive.Record.State != store.StreamOpen || !reportIsCurrent(m.Instance) || !m.Report.Record.Healthy {
		return
	}
	if m.judgment.Verdict != store.Live {
		return
	}
	why := "its agent reports and it has no checks"
	if n := len(m.Report.Record.Checks); n > 0 {
		why = fmt.Sprintf("checks %d/%d", n, n)
	}
	a := d.step(m, store.Running, "DET-9", "healthy", fmt.Sprintf("%s, %s after it registered", why, d.since(m)), []string{streamSays(m.Instance), fmt.Sprintf("report rev %d", m.Report.Modified)}, nil)
	a.Conditions = append(a.Conditions, m.Alive.Unchanged(), m.Report.Unchanged())
}

// remember forgets the failures of a slot whose instance has been healthy for long enough (FLAP-4).
func (d *draft) remember(m *member) {
	if !m.Record.Managed || !m.healthy() {
		return
	}
	if m.Record.Counted {
		d.recovered(m)
		return
	}
	sl, ok := d.slots[m.Record.Slot]
	if !ok || d.spec == nil || len(sl.Record.Failures) == 0 || sl.touched {
		return
	}
	if due := d.forgetFrom(m, sl); d.now.Before(due) {
		d.wake(due)
		return
	}
	rec := sl.Record
	rec.Failures, rec.Retry, rec.Flapping = nil, nil, 0
	sl.touched = true
	d.actions = append(d.actions, Action{
		Group: d.g.Name, Instance: m.ID(), Slot: slotOf(m.Record), Rule: "FLAP-4", What: "slot's failures forgotten",
		Why:        fmt.Sprintf("%s has been healthy for %s", m.ID(), d.spec.Flap.Reset),
		Conditions: []store.Condition{sl.Unchanged(), m.Unchanged()},
		Writes:     []store.Write{store.Put(sl.Key, store.Encode(rec))},
	})
}

// forgetFrom is when a member has been healthy for flap.reset: since it runs, and since the last failure of its slot, which
// may have been its own. A failure that a wrong clock put into the future does not count.
func (d *draft) forgetFrom(m *member, sl *slot) time.Time {
	reset := d.spec.Flap.Reset.D()
	due := m.PhaseStart.Add(reset)
	for _, f := range sl.Record.Failures {
		if at := f.At.Add(reset); at.After(due) && d.now.Sub(f.At) > -time.Minute {
			due = at
		}
	}
	return due
}

// recovered takes back that its failure is counted: the next one is another (FLAP-1).
func (d *draft) recovered(m *member) {
	a := d.step(m, m.phase, "HEAL-6", "recovered", m.judgment.Why, m.judgment.Evidence, func(r *store.Instance) { r.Counted = false })
	a.Conditions = append(a.Conditions, m.Alive.Unchanged(), m.Report.Unchanged())
}

func (d *draft) since(m *member) time.Duration {
	return d.now.Sub(m.PhaseStart).Round(100 * time.Millisecond)
}
