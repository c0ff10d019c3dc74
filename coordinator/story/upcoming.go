package story

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// Upcoming is a time at which something is decided even if nothing happens until then.
type Upcoming struct {
	At   time.Time `json:"at"`
	What string    `json:"what"` // what happens or is decided then
	Rule string    `json:"rule,omitempty"`
}

// InstanceUpcoming returns the upcoming decisions of an instance's own timers.
func InstanceUpcoming(i store.Instance) []Upcoming {
	var all []Upcoming
	if d := i.Drain; d != nil && i.Phase == store.Draining && d.Done == "" {
		all = append(all, Upcoming{
			At: d.Timer.End(), What: i.ID + " has reached its drain limit, and is removed",
			Rule: "DRAIN-1",
		})
	}
	if d := i.Doomed; d != nil && d.Deadline != nil {
		all = append(all, Upcoming{At: d.Deadline.End(), What: i.ID + " ends, by the notice", Rule: d.Rule})
	}
	all = append(all, upgradeUpcoming(i)...)
	switch i.Phase {
	case store.Booting:
		all = append(all, Upcoming{
			At:   i.Since.Add(i.Spec.RegistrationTimeout.D()),
			What: i.ID + " has failed, unless its agent has registered", Rule: "DET-11",
		})
	case store.Checking:
		if limit := i.Spec.MaxChecking.D(); limit > 0 {
			all = append(all, Upcoming{
				At: i.Since.Add(limit), What: i.ID + " has failed, unless it is healthy",
				Rule: "DET-10",
			})
		}
	default: // no timer runs
	}
	return all
}

// upgradeUpcoming returns when an instance's agent has proved the version that it was offered, at
// the earliest, and when the upgrade stops because of it (PROV-7).
func upgradeUpcoming(i store.Instance) []Upcoming {
	u := i.Upgrade
	switch {
	case u == nil || u.Withdrawn:
		return nil
	case !u.Installed:
		return []Upcoming{{
			At: u.Timer.End(), Rule: "PROV-7",
			What: "the upgrade of agents stops, unless the agent of " + i.ID + " has answered",
		}}
	}
	proves := "the agent of " + i.ID + " has proved " + reason.OneLine(u.Version)
	return []Upcoming{
		{At: u.Timer.Start.Add(u.Within.D()), What: proves + ", if it stays connected and healthy", Rule: "PROV-7"},
		{At: u.Timer.End(), What: "the upgrade of agents stops, unless " + proves, Rule: "PROV-7"},
	}
}

// SlotUpcoming returns the upcoming decisions of a flapping slot.
func SlotUpcoming(s store.Slot) []Upcoming {
	var all []Upcoming
	if s.Retry != nil {
		all = append(all, Upcoming{
			At: s.Retry.End(), What: fmt.Sprintf("slot %d is tried again", s.Number),
			Rule: "FLAP-2",
		})
	}
	if s.GiveUp != nil {
		all = append(all, Upcoming{
			At:   s.GiveUp.End(),
			What: fmt.Sprintf("slot %d is given up, if it still flaps", s.Number), Rule: "FLAP-3",
		})
	}
	return all
}

// StatusUpcoming returns the upcoming decisions of a storm, of a roll, and of work that waits for a
// window or for the end of a freeze.
func StatusUpcoming(st store.Status) []Upcoming {
	var all []Upcoming
	if s := st.Storm; s != nil {
		if s.Calm != nil {
			all = append(all, Upcoming{
				At: s.Calm.End(), What: "the storm is over, if losses stay few",
				Rule: "SAFE-2",
			})
		}
		if s.NextProbe != nil && s.Probe == "" {
			all = append(all, Upcoming{
				At: s.NextProbe.End(), What: "one lost instance is replaced, as a probe",
				Rule: "SAFE-2",
			})
		}
		if s.Resume != nil {
			all = append(all, Upcoming{
				At: s.Resume.End(), What: "the last lost instance is replaced",
				Rule: "SAFE-2",
			})
		}
	}
	if r := st.Rollout; r != nil && r.Stalls != nil {
		all = append(all, Upcoming{
			At: r.Stalls.End(), What: "the roll is stalled, unless one more instance is done",
			Rule: "ROLL-4",
		})
	}
	if r := st.Rollout; r != nil && r.Rests != nil {
		next := Upcoming{At: r.RestsTo(), What: "the roll goes on, if its canaries stay healthy", Rule: "ROLL-5"}
		if r.Zone != "" {
			next.What, next.Rule = "the roll goes on, if zone "+r.Zone+" stays healthy", "ROLL-8"
		}
		all = append(all, next)
	}
	for i := range st.Blocked {
		b := &st.Blocked[i]
		if (b.Kind == store.BlockedByWindow || b.Kind == store.BlockedByFreeze) && !b.Of.Opens.IsZero() {
			all = append(all, Upcoming{At: b.Of.Opens, What: reason.What(b) + " may begin", Rule: b.Rule})
		}
	}
	return all
}

// LeaseUpcoming returns when the lease of an agent ends whose stream is not open.
func LeaseUpcoming(i store.Instance, alive store.Alive) []Upcoming {
	if alive.State == store.StreamOpen || !i.Phase.Registered() {
		return nil
	}
	by := alive.Since.Add(i.Spec.Report.LeaseTTL.D())
	if alive.State == store.StreamOverdue { // its lease was renewed one and a half intervals earlier
		by = by.Add(-i.Spec.Report.Interval.D() * 3 / 2)
	}
	return []Upcoming{{
		At: by,
		What: fmt.Sprintf("by then the lease (%s) of %s has ended, unless its agent reports; "+
			"it is lost once that is confirmed and no grace runs", i.Spec.Report.LeaseTTL, i.ID), Rule: "DET-17",
	}}
}

// FirstUpcoming returns the earliest upcoming decision; nil if there is none.
func FirstUpcoming(all []Upcoming, now time.Time) *Upcoming {
	slices.SortStableFunc(all, func(a, b Upcoming) int { return a.At.Compare(b.At) })
	for i := range all {
		if all[i].At.After(now) {
			return &all[i]
		}
	}
	return nil
}
