package plan

import (
	"github.com/leasehold/leasehold/store"
)

// followSchedule applies the schedule of the group, and reports whether it sets a new size
// (AUTO-3). It uses the wall clock, which may be wrong: while the replicas' clocks differ, a change
// that shrinks the group waits (SAFE-13), as it does while nothing else may shrink the group
// (AUTO-5). Missed times are not made up for: only the last one counts.
func (d *scaler) followSchedule() (changed bool) {
	s, spec := d.scale, d.spec.Scale
	s.Waits = ""
	if len(spec.Schedule) == 0 {
		s.Scheduled = nil
		return false
	}
	if next, _ := spec.NextChange(d.now); !next.IsZero() {
		d.wake(next)
	}
	due := spec.ScheduledAt(d.now)
	if samePart(due, s.Scheduled) {
		return false
	}
	if after := spec.Under(due).Within(s.Size); after < s.Size || spec.Under(due).Max < spec.Under(s.Scheduled).Max ||
		spec.Under(due).Least() < spec.Under(s.Scheduled).Least() {
		if s.Waits = d.holdsSize(); d.s.ClocksApart >= ClocksApart {
			s.Waits = store.ScaleClocks
			d.wake(d.now.Add(ClocksApart))
		}
		if s.Waits != "" {
			return false
		}
	}
	s.Scheduled = due
	if due != nil {
		d.tell("AUTO-3", store.Effect{Kind: store.EffectBySchedule, Text: due.Sets()}, store.Cause{
			Kind: store.CauseScheduled, Name: due.Cron, Text: due.TimeZone, Count: d.spec.Size,
			Limit: spec.Under(due).Within(s.Size),
		})
	}
	return true
}
