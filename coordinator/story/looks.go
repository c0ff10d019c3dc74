package story

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Look is a time at which something is decided even if nothing happens until then.
type Look struct {
	At   time.Time `json:"at"`
	What string    `json:"what"` // what happens or is decided then
	Rule string    `json:"rule,omitempty"`
}

// InstanceLooks returns the looks for an instance's own timers.
func InstanceLooks(i store.Instance) []Look {
	var all []Look
	if d := i.Drain; d != nil && i.Phase == store.Draining && d.Done == "" {
		all = append(all, Look{
			At: d.Timer.End(), What: i.ID + " has reached its drain limit, and is removed",
			Rule: "DRAIN-1",
		})
	}
	if d := i.Doomed; d != nil && d.Deadline != nil {
		all = append(all, Look{At: d.Deadline.End(), What: i.ID + " ends, by the notice", Rule: d.Rule})
	}
	switch i.Phase {
	case store.Booting:
		all = append(all, Look{
			At:   i.Since.Add(i.Spec.RegistrationTimeout.D()),
			What: i.ID + " has failed, unless its agent has registered", Rule: "DET-11",
		})
	case store.Checking:
		if limit := i.Spec.MaxChecking.D(); limit > 0 {
			all = append(all, Look{
				At: i.Since.Add(limit), What: i.ID + " has failed, unless it is healthy",
				Rule: "DET-10",
			})
		}
	default: // no timer runs
	}
	return all
}

// SlotLooks returns the looks for a flapping slot.
func SlotLooks(s store.Slot) []Look {
	var all []Look
	if s.Retry != nil {
		all = append(all, Look{
			At: s.Retry.End(), What: fmt.Sprintf("slot %d is tried again", s.Number),
			Rule: "FLAP-2",
		})
	}
	if s.GiveUp != nil {
		all = append(all, Look{
			At:   s.GiveUp.End(),
			What: fmt.Sprintf("slot %d is given up, if it still flaps", s.Number), Rule: "FLAP-3",
		})
	}
	return all
}

// StatusLooks returns the looks for a storm and a roll.
func StatusLooks(st store.Status) []Look {
	var all []Look
	if s := st.Storm; s != nil {
		if s.Calm != nil {
			all = append(all, Look{
				At: s.Calm.End(), What: "the storm is over, if losses stay few",
				Rule: "SAFE-2",
			})
		}
		if s.Next != nil && s.Probe == "" {
			all = append(all, Look{
				At: s.Next.End(), What: "one lost instance is replaced, as a probe",
				Rule: "SAFE-2",
			})
		}
		if s.Resume != nil {
			all = append(all, Look{
				At: s.Resume.End(), What: "the last lost instance is replaced",
				Rule: "SAFE-2",
			})
		}
	}
	if r := st.Rollout; r != nil && r.Stalls != nil {
		all = append(all, Look{
			At: r.Stalls.End(), What: "the roll is stalled, unless one more instance is done",
			Rule: "ROLL-4",
		})
	}
	return all
}

// SilentLooks returns when the lease of an agent ends whose stream is not open.
func SilentLooks(i store.Instance, alive store.Alive) []Look {
	if alive.State == store.StreamOpen || !i.Phase.Registered() {
		return nil
	}
	by := alive.Since.Add(i.Spec.Report.LeaseTTL.D())
	if alive.State == store.StreamOverdue { // its lease was renewed one and a half intervals earlier
		by = by.Add(-i.Spec.Report.Interval.D() * 3 / 2)
	}
	return []Look{{
		At: by,
		What: fmt.Sprintf("by then the lease (%s) of %s has ended, unless its agent reports; "+
			"it is lost once that is confirmed and no grace runs", i.Spec.Report.LeaseTTL, i.ID), Rule: "DET-17",
	}}
}

// FirstLook returns the earliest future look; nil if there is none.
func FirstLook(all []Look, now time.Time) *Look {
	slices.SortStableFunc(all, func(a, b Look) int { return a.At.Compare(b.At) })
	for i := range all {
		if all[i].At.After(now) {
			return &all[i]
		}
	}
	return nil
}
