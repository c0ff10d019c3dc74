package view

import (
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

// Drill is a drill with what was promised for it (DAY-6).
type Drill struct {
	review.DrillSeen
	Promises []review.Promise `json:"promises"` // none while it is under way, and if it was refused
	Outcome  review.Outcome   `json:"outcome"`
}

// drills caches the drills of groups until the journal in memory grows: the cache changes far more
// often, and each change makes every reader that watches drills ask again.
type drills struct {
	mu   sync.Mutex
	at   <-chan struct{} // closed when the journal grows, and then replaced
	seen map[string][]review.DrillSeen
}

// of returns a group's drills, the oldest first. False: the journal was not read yet.
func (d *drills) of(group string, j *journal.Memory) (seen []review.DrillSeen, read bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := j.Moved(); d.at != at { // taken first: entries that come meanwhile are read twice, not missed
		d.at, d.seen = at, map[string][]review.DrillSeen{}
	}
	if seen, read = d.seen[group]; read {
		return seen, true
	}
	read = j.View(func(known []journal.Entry, _ time.Time) {
		var entries []*store.JournalEntry
		for i := range known {
			if known[i].Group == group {
				entries = append(entries, &known[i].JournalEntry)
			}
		}
		seen = review.Drills(entries)
	})
	if len(seen) > 0 { // readers may name any group
		d.seen[group] = seen
	}
	return seen, read
}

// Drills returns a group's drills in the journal in memory, newest first. It returns false if
// nothing was read yet.
func (s *Source) Drills(group string) (all []Drill, read bool) {
	seen, known := s.drills.of(group, s.journal)
	read = s.cache.View(func(c *cache.Content) {
		promised := c.Status[group].Record.Accepted
		var failed []store.Slot
		for _, slot := range c.Slots[group] {
			if len(slot.Record.Failures) > 0 {
				failed = append(failed, slot.Record)
			}
		}
		for _, d := range slices.Backward(seen) {
			one := Drill{DrillSeen: d, Promises: []review.Promise{}}
			if promised != nil && d.Over() && d.Refused == "" {
				var blamed []string
				for i := range failed {
					blamed = append(blamed, d.Blames(&failed[i])...)
				}
				slices.Sort(blamed)
				one.Promises = d.Promises(*promised, blamed)
			}
			one.Outcome = d.Outcome(one.Promises)
			all = append(all, one)
		}
	})
	return all, read && known
}
