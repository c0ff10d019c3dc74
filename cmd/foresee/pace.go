package foresee

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Pace is the median time from the record of an instance to its health, of those of the group that run since they were started; false
// if there is none. A time longer than a start may take is that of an instance that has restarted or recovered since.
func (w *World) Pace() (time.Duration, bool) {
	var took []time.Duration
	for _, id := range w.content.ByGroup[w.group] {
		rec := w.content.Instances[id].Record
		d := rec.Since.Sub(rec.Created)
		most := rec.Spec.RegistrationTimeout.D() + rec.Spec.MaxChecking.D()
		if rec.Phase == store.Running && d > 0 && d <= most {
			took = append(took, d)
		}
	}
	if len(took) == 0 {
		return 0, false
	}
	slices.Sort(took)
	return took[len(took)/2], true
}
