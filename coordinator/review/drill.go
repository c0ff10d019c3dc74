package review

import (
	"cmp"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// DrillSeen is what the journal has of a drill so far (DAY-6).
type DrillSeen struct {
	Order     string          `json:"order"`
	Kind      store.DrillKind `json:"kind,omitempty"`
	Zone      string          `json:"zone,omitempty"` // if all of the group's machines there are to fail
	By        string          `json:"by,omitempty"`
	At        time.Time       `json:"at,omitzero"`       // when the leader took the order
	Refused   string          `json:"refused,omitempty"` // why the leader has not begun it
	Instances []DrilledSeen   `json:"instances"`
	// Others are instances of the group that failed meanwhile without being drilled.
	Others []string `json:"others,omitempty"`
}

// DrilledSeen is the outcome for one instance. Times are zero until then.
type DrilledSeen struct {
	Instance string    `json:"instance"`
	Ended    time.Time `json:"ended,omitzero"` // when the provider was called, or the agent ordered
	// Verdict is the last one before it was replaced or came back, and Seen when it got the first:
	// of an agent that was killed, a suspicion counts.
	Verdict     store.Verdict `json:"verdict,omitempty"`
	Seen        time.Time     `json:"seen,omitzero"`
	Replacement string        `json:"replacement,omitempty"`
	Replaced    time.Time     `json:"replaced,omitzero"`  // when the replacement was requested
	Restarted   time.Time     `json:"restarted,omitzero"` // when its restart was begun instead
	Returned    time.Time     `json:"returned,omitzero"`  // when its agent was back, and it was kept
	Served      time.Time     `json:"served,omitzero"`    // when its slot was served again

	slot int
}

// Target says what was to fail: a kind of DrillKinds, or a zone.
func (d DrillSeen) Target() string {
	if d.Zone != "" {
		return "zone " + d.Zone
	}
	return cmp.Or(string(d.Kind), store.DrillKinds[0])
}

// Over reports whether nothing more is to come: it was refused, or all slots are served again.
func (d DrillSeen) Over() bool {
	return d.Refused != "" || len(d.Instances) > 0 && !slices.ContainsFunc(d.Instances,
		func(i DrilledSeen) bool { return i.Served.IsZero() })
}

// Drills finds the drills in the entries of a group, oldest first, refused ones included. A drill
// does not include what happens after its end.
func Drills(entries []*store.JournalEntry) []DrillSeen {
	var all, open []*DrillSeen
	known := map[string]bool{}
	for _, e := range byTime(entries) {
		if order := begins(e); order != "" && !known[order] {
			known[order] = true
			d := &DrillSeen{Order: order, Instances: []DrilledSeen{}}
			all, open = append(all, d), append(open, d)
		}
		open = slices.DeleteFunc(open, func(d *DrillSeen) bool {
			d.take(e)
			return d.Over()
		})
	}
	seen := make([]DrillSeen, len(all))
	for i, d := range all {
		seen[i] = *d
	}
	return seen
}

// begins returns the order of the drill that an entry begins or refuses, or "". A refusal has a
// kind only if a drill is refused.
func begins(e *store.JournalEntry) string {
	begun := e.Rule == RuleDrill && e.Kind == "" && e.Instance != ""
	for i := range e.Facts {
		f := &e.Facts[i]
		if f.Kind == store.FactRequest && (begun || e.Kind == store.EntryRefusal && f.Text != "") {
			return f.Name
		}
	}
	return ""
}

// byTime sorts entries by time. The journal in memory is sorted but for the differences of clocks.
func byTime(entries []*store.JournalEntry) []*store.JournalEntry {
	earlier := func(a, b *store.JournalEntry) int { return a.At.Compare(b.At) }
	if slices.IsSortedFunc(entries, earlier) {
		return entries
	}
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, earlier)
	return entries
}

// SeenOfDrill returns the state of the drill with this order.
func SeenOfDrill(entries []store.JournalEntry, order string) DrillSeen {
	d := DrillSeen{Order: order, Instances: []DrilledSeen{}}
	all := make([]*store.JournalEntry, len(entries))
	for i := range entries {
		all[i] = &entries[i]
	}
	for _, e := range byTime(all) {
		if d.take(e); d.Over() {
			break
		}
	}
	return d
}

// take takes the next entry of the group.
func (d *DrillSeen) take(e *store.JournalEntry) {
	ours := reason.Follows(e, d.Order)
	switch {
	case ours && e.Kind == store.EntryRefusal:
		d.Refused, d.At = e.Why, e.At
		for _, f := range e.Facts {
			if f.Kind == store.FactRequest {
				d.Kind, d.Zone, d.By = (&store.DrillSpec{Kind: f.Text}).Of(), f.Zone, f.By
			}
		}
	case ours && e.Kind == store.EntryCall && e.Slot != nil:
		in := d.add(e.Instance)
		in.Ended, in.slot = e.At, *e.Slot
	case ours && e.Rule == RuleDrill:
		in := d.add(e.Instance)
		d.By, d.At = e.Cause.By, e.At
		for _, f := range e.Facts {
			switch f.Kind {
			case store.FactInstance:
				d.add(f.Name)
			case store.FactRequest:
				d.Kind, d.Zone = store.DrillKind(f.Text), f.Zone
			default:
			}
		}
		if d.Kind != store.DrillMachine && e.Slot != nil {
			in.Ended, in.slot = e.At, *e.Slot
		}
	case len(d.Instances) == 0 || !concerns(e):
	default:
		in := d.find(func(i *DrilledSeen) bool { return i.slot == *e.Slot && !i.Ended.IsZero() })
		if in == nil {
			if troubled(e.Verdict) && e.Kind == store.EntryVerdict && !slices.Contains(d.Others, e.Instance) {
				d.Others = append(d.Others, e.Instance)
			}
			return
		}
		in.follow(e, d.Kind)
	}
}

func (d *DrillSeen) find(is func(*DrilledSeen) bool) *DrilledSeen {
	for i := range d.Instances {
		if is(&d.Instances[i]) {
			return &d.Instances[i]
		}
	}
	return nil
}

func (d *DrillSeen) add(id string) *DrilledSeen {
	if i := d.find(func(i *DrilledSeen) bool { return i.Instance == id }); i != nil {
		return i
	}
	d.Instances = append(d.Instances, DrilledSeen{Instance: id, slot: -1})
	return &d.Instances[len(d.Instances)-1]
}

// follow takes an entry about the slot after the failure was caused.
func (i *DrilledSeen) follow(e *store.JournalEntry, kind store.DrillKind) {
	own := e.Instance == i.Instance
	noticed := troubled(e.Verdict) || kind == store.DrillAgent && e.Verdict == store.Suspect
	if own && noticed && i.Served.IsZero() {
		if i.Seen.IsZero() {
			i.Seen = e.At
		}
		if i.Replaced.IsZero() && i.Restarted.IsZero() {
			i.Verdict = e.Verdict
		}
	}
	if e.Replacement != "" && i.Replaced.IsZero() {
		i.Replacement, i.Replaced = e.Replacement, e.At
	}
	if own && e.To == store.Stopping && i.Restarted.IsZero() {
		i.Restarted = e.At
	}
	back := own && e.Kind == store.EntryVerdict && e.Verdict == store.Live && !i.Seen.IsZero()
	if back && i.Replaced.IsZero() && i.Restarted.IsZero() && i.Returned.IsZero() {
		i.Returned = e.At
	}
	if (e.To == store.Running || !i.Returned.IsZero()) && i.Served.IsZero() {
		i.Served = e.At
	}
}
