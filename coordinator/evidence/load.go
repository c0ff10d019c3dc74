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

// seeLoad records a report in which only numbers are new. They concern only groups that follow
// their load.
func (e *Evidence) seeLoad(c *cache.Content, change cache.Change) {
	w := e.instances[change.Name]
	if change.Kind != store.KindReports || w == nil {
		return
	}
	now := e.cfg.Now()
	w.seeReport(c.Reports[change.Name].Modified, now, false)
	if st := c.Status[w.group].Record; st.Accepted != nil && st.Accepted.Scale != nil {
		e.due.add(w.group, now.Add(loadEvery))
	}
}
