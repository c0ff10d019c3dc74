package evidence

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// loadEvery is how often a group is planned only for new load numbers: its instances report one
// after the other.
const loadEvery = 5 * time.Second

// seeReport records when a report arrived. For the reports in our first listing that is unknown, so
// their load is not used (AUTO-2).
func (w *observed) seeReport(revision store.Revision, now time.Time, first bool) {
	if w.report == revision {
		return
	}
	if w.report = revision; !first {
		w.reportSeen = now
	}
}

// seeSame records a change that decides nothing, except for new numbers in a report: they concern
// groups that follow their load.
func (e *Evidence) seeSame(c *cache.Content, change cache.Change) {
	w := e.instances[change.Name]
	if w == nil {
		return
	}
	if change.Kind != store.KindReports {
		w.version++ // its record has another revision
		return
	}
	e.settle(c, change.Name, w)
	now := e.cfg.Now()
	w.numbers++
	w.seeReport(c.Reports[change.Name].Modified, now, false)
	e.loadDue(c, w.group, now)
}
