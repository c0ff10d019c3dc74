package review

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// DayEntries picks what Days needs of the journal from Before a day on, up to a bound.
type DayEntries struct {
	All []store.JournalEntry
	// Unread is how many entries up to the end of the day were beyond the bound.
	Unread int

	end  time.Time // of the day
	most int
	seen map[string]bool // instances whose state some entry has said
}

// NewDayEntries begins with the day that begins at a time.
func NewDayEntries(begin time.Time, most int) *DayEntries {
	return &DayEntries{end: begin.Add(dayLong), most: most, seen: map[string]bool{}}
}

// Take takes an entry, of which the oldest comes first. Long after the day only the first entry of
// an instance counts: it says that the instance was there before.
func (d *DayEntries) Take(e store.JournalEntry) {
	if !e.At.Before(d.end.Add(Before)) && (!saysState(&e) || d.seen[e.Instance]) {
		return
	}
	if e.At.Before(d.end.Add(-dayLong)) && len(d.All) >= d.most/2 {
		d.drop(len(d.All) / 2)
	}
	if len(d.All) >= d.most {
		if e.At.Before(d.end) {
			d.Unread++
		}
		return
	}
	d.All = append(d.All, Slim(e))
	d.note(&e)
}

// note records the instances in an entry.
func (d *DayEntries) note(e *store.JournalEntry) {
	if saysState(e) {
		d.seen[e.Instance] = true
	}
	if e.Replacement != "" {
		d.seen[e.Replacement] = true
	}
}

// drop drops the oldest entries: what was before the day must not take the place of the day.
func (d *DayEntries) drop(n int) {
	d.All = slices.Delete(d.All, 0, n)
	clear(d.seen)
	for i := range d.All {
		d.note(&d.All[i])
	}
}

// saysState reports whether an entry says in which state an instance was.
func saysState(e *store.JournalEntry) bool {
	return concerns(e) && (e.To != "" || e.Kind == store.EntryVerdict)
}
