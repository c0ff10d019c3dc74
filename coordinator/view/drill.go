package view

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

// Drill is a drill with what was promised of it (DAY-6).
type Drill struct {
	review.DrillSeen
	Promises []review.Promise `json:"promises"` // none while it goes on
	Kept     bool             `json:"kept"`
}

// Drills are a group's drills, as far as the journal in memory tells, the newest first. False:
// nothing was read yet.
func (s *Source) Drills(group string) (all []Drill, read bool) {
	var entries []store.JournalEntry
	read = s.journal.View(func(known []journal.Entry, _ time.Time) {
		for i := range known {
			if known[i].Group == group {
				entries = append(entries, known[i].JournalEntry)
			}
		}
	})
	seen := review.Drills(entries)
	read = s.cache.View(func(c *cache.Content) {
		promised := c.Status[group].Record.Accepted
		for _, d := range slices.Backward(seen) {
			one := Drill{DrillSeen: d, Promises: []review.Promise{}, Kept: d.Refused == ""}
			if promised != nil && d.Over() && d.Refused == "" {
				var blamed []string
				for n := range c.Slots[group] {
					slot := c.Slots[group][n].Record
					blamed = append(blamed, d.Blames(&slot)...)
				}
				slices.Sort(blamed)
				one.Promises = d.Promises(*promised, blamed)
			}
			one.Kept = one.Kept && !slices.ContainsFunc(one.Promises, func(p review.Promise) bool { return !p.Kept })
			all = append(all, one)
		}
	}) && read
	return all, read
}
