package view

import (
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/journal"
)

// Wanted selects entries of the journal. The zero value selects all.
type Wanted struct {
	Group, Instance string
	Rule            string    // or a family of rules, such as DET
	Text            string    // in the decision or its reason
	Before          string    // older than the entry with this name
	After           string    // newer than the entry with this name
	From, To        time.Time // zero: unbounded
	Most            int       // how many; 0: all
}

// Events are entries of the journal.
type Events struct {
	Entries []journal.Entry // the newest first
	More    bool            // older entries match as well
	Since   time.Time       // older entries are not in memory
	Read    bool            // the journal was read
}

// Events selects entries.
func (s *Source) Events(want Wanted) (v Events) {
	v.Read = s.journal.View(func(entries []journal.Entry, since time.Time) {
		v.Since = since
		for i, e := range slices.Backward(entries) {
			switch {
			case want.After != "" && e.Name <= want.After:
				return
			case !want.selects(&entries[i]):
			case want.Most > 0 && len(v.Entries) == want.Most:
				v.More = true
				return
			default:
				v.Entries = append(v.Entries, e)
			}
		}
	})
	return v
}

func (w *Wanted) selects(e *journal.Entry) bool {
	text := strings.ToLower(w.Text)
	return (w.Before == "" || e.Name < w.Before) && (w.Group == "" || e.Group == w.Group) &&
		(w.Instance == "" || e.Instance == w.Instance || e.Replacement == w.Instance) &&
		(w.Rule == "" || strings.EqualFold(e.Rule, w.Rule) ||
			strings.HasPrefix(strings.ToUpper(e.Rule), strings.ToUpper(w.Rule)+"-")) &&
		(text == "" || strings.Contains(strings.ToLower(e.What+" "+e.Why), text)) &&
		(w.From.IsZero() || !e.At.Before(w.From)) && (w.To.IsZero() || e.At.Before(w.To))
}
