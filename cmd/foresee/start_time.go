package foresee

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// StartTime is the median time from the record of an instance to its health, over the running
// instances of the group; false if there are none.
func (w *World) StartTime() (time.Duration, bool) {
	var took []time.Duration
	for _, id := range w.content.ByGroup[w.group] {
		rec := w.content.Instances[id].Record
		d := w.started(rec).Sub(rec.Created)
		most := rec.Spec.RegistrationTimeout.D() + rec.Spec.MaxChecking.D()
		if rec.Phase == store.Running && d > 0 && d <= most { // longer than a start may take: something else happened
			took = append(took, d)
		}
	}
	if len(took) == 0 {
		return 0, false
	}
	slices.Sort(took)
	return took[len(took)/2], true
}

// started returns when an instance first served; zero: unknown. After a restart of the machine or
// of the workload an instance passes through its phases again, so its phase is newer than its
// start. Where only the workload was restarted, its last start stands for its first one.
func (w *World) started(rec store.Instance) time.Time {
	alive := w.content.Alive[rec.ID]
	first := alive.Record.Epoch == 1
	switch {
	case !alive.Present():
		return rec.Since
	case w.content.Reports[rec.ID].Record.Restarted != "" && first:
		return alive.Record.Since.Add(w.restarted(rec)) // its agent registered, and started the workload
	case w.content.Reports[rec.ID].Record.Restarted != "", !first && !alive.Record.Since.After(rec.Since):
		return time.Time{}
	default:
		return rec.Since
	}
}

// restarted returns how long the workload took to be healthy when it was started last; 0: unknown.
func (w *World) restarted(rec store.Instance) time.Duration {
	for _, c := range w.content.Reports[rec.ID].Record.Checks {
		if d := rec.Since.Sub(c.Since); c.Name == store.ProcessCheckName && c.Healthy && d > 0 {
			return d
		}
	}
	return 0
}
