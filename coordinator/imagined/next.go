package imagined

import "time"

// Next is when the next event happens; false if there is none.
func (w *World) Next() (time.Duration, bool) {
	if len(w.agenda) == 0 {
		return 0, false
	}
	return max(w.clock, w.agenda[0].at), true
}
