package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

// Report returns how well groups were kept, from the journal in memory (DAY-5). With a group, it
// covers only that group. It returns false if nothing was read yet.
func (s *Source) Report(group string, span time.Duration, now time.Time) (r review.Report, read bool) {
	in := review.Input{From: now.Add(-span), To: now}
	s.cache.View(func(c *cache.Content) {
		read = c.Revision != 0
		in.Created = c.Served.Record.Begins(c.Shard.Record)
		for _, v := range c.Instances {
			if group == "" || v.Record.Group == group {
				in.Instances = append(in.Instances, v.Record)
			}
		}
	})
	var since time.Time
	known := s.journal.View(func(entries []journal.Entry, begins time.Time) {
		since = begins
		in.Entries = make([]store.JournalEntry, 0, len(entries))
		for i := range entries {
			if group == "" || entries[i].Group == group {
				in.Entries = append(in.Entries, entries[i].JournalEntry)
			}
		}
	})
	short := since.After(in.From)
	if short {
		in.From = since
	}
	r = review.Of(in)
	if group != "" {
		r.Groups = slices.DeleteFunc(r.Groups, func(g review.Group) bool { return g.Name != group })
	}
	if short {
		r.Unknown = append(r.Unknown, fmt.Sprintf(
			"The journal in memory begins %s: leasehold report reads further back.", since.UTC().Format("01-02 15:04:05")))
	}
	return r, read && known
}
