package plan

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// noteLeft compares among how many instances the load is divided with the last look, and remembers
// those that have left. It returns how many of them are in no number yet: an instance takes its
// numbers along, while the others tell its load as a mean of a minute, up to a report later.
func (d *scaler) noteLeft() (left float64) {
	s, instances := d.scale, d.divided()
	if by := s.Divided - instances; by > 0 {
		counts := d.timer(loadMean + d.loadLate())
		if s.Left = append(slices.Clone(s.Left), store.ScaleLeft{By: by, Counts: counts}); len(s.Left) > maxLeft {
			s.Left[1].By += s.Left[0].By
			s.Left = s.Left[1:]
		}
	}
	s.Divided = instances
	var kept []store.ScaleLeft
	for _, l := range s.Left {
		if due := d.ends(d.g.Due, l.TimerName(), &l.Counts); d.now.Before(due) {
			kept = append(kept, l)
			left += float64(l.By) * min(1, due.Sub(d.now).Seconds()/loadMean.Seconds())
			d.wake(due)
		}
	}
	s.Left = kept
	return left
}

// divided is among how many instances the load is divided. A slot that is to be filled counts: its
// load is taken for the target.
func (d *scaler) divided() int {
	slots, draining := 0, 0
	for _, sl := range d.order {
		fills := false
		for _, m := range sl.members {
			switch {
			case !m.Record.Managed:
			case m.phase.Fills():
				fills = true
			case m.phase == store.Draining:
				draining++
			}
		}
		if fills {
			slots++
		}
	}
	return max(slots, d.spec.Size) + draining
}

// loadLate is how old the newest number of an instance may be in good order.
func (d *scaler) loadLate() time.Duration { return max(loadEvery, d.spec.Report.Interval.D()) }
