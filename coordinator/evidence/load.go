package evidence

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// loadEvery is how often a group is planned for nothing but new numbers of its load: its instances
// report one after the other.
const loadEvery = 5 * time.Second

// seeReport notes when a report came. Of the reports in our first listing that is not known, so
// what they say of load is not used (AUTO-2).
func (w *observed) seeReport(revision store.Revision, now time.Time, first bool) {
	if w.report == revision {
		return
	}
	if w.report = revision; !first {
		w.reportSeen = now
	}
}

// seeLoad takes a report up in which nothing but numbers is new. They concern groups alone whose
// size follows their load.
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
