package review

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// DrillSeen is what the journal has of a drill so far (DAY-6).
type DrillSeen struct {
	Order     string          `json:"order"`
	Kind      store.DrillKind `json:"kind,omitempty"`
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

// Over reports whether nothing more is to come: it was refused, or all slots are served again.
func (d DrillSeen) Over() bool {
	return d.Refused != "" || len(d.Instances) > 0 && !slices.ContainsFunc(d.Instances,
		func(i DrilledSeen) bool { return i.Served.IsZero() })
}

// Drills finds the drills in the entries of a group, oldest first.
func Drills(entries []store.JournalEntry) (all []DrillSeen) {
	seen := map[string]bool{}
	for i := range entries {
		e := &entries[i]
		if e.Rule != RuleDrill || e.Kind != "" || e.Instance == "" {
			continue
		}
		for _, f := range e.Facts {
			if f.Kind == store.FactRequest && !seen[f.Name] {
				seen[f.Name] = true
				all = append(all, SeenOfDrill(entries, f.Name))
			}
		}
	}
	return all
}

// SeenOfDrill returns the state of the drill with this order.
func SeenOfDrill(entries []store.JournalEntry, order string) DrillSeen {
	d := DrillSeen{Order: order, Instances: []DrilledSeen{}}
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b store.JournalEntry) int { return a.At.Compare(b.At) })
	find := func(is func(*DrilledSeen) bool) *DrilledSeen {
		for i := range d.Instances {
			if is(&d.Instances[i]) {
				return &d.Instances[i]
			}
		}
		return nil
	}
	add := func(id string) *DrilledSeen {
		if i := find(func(i *DrilledSeen) bool { return i.Instance == id }); i != nil {
			return i
		}
		d.Instances = append(d.Instances, DrilledSeen{Instance: id, slot: -1})
		return &d.Instances[len(d.Instances)-1]
	}
	for i := range entries {
		e := &entries[i]
		ours := reason.Follows(e, order)
		switch {
		case ours && e.Kind == store.EntryRefusal:
			d.Refused = e.Why
		case ours && e.Kind == store.EntryCall && e.Slot != nil:
			in := add(e.Instance)
			in.Ended, in.slot = e.At, *e.Slot
		case ours && e.Rule == RuleDrill:
			in := add(e.Instance)
			d.By, d.At = e.Cause.By, e.At
			for _, f := range e.Facts {
				switch f.Kind {
				case store.FactInstance:
					add(f.Name)
				case store.FactRequest:
					d.Kind = store.DrillKind(f.Text)
				default:
				}
			}
			if d.Kind != store.DrillMachine && e.Slot != nil {
				in.Ended, in.slot = e.At, *e.Slot
			}
		case len(d.Instances) == 0 || !concerns(e):
		default:
			in := find(func(i *DrilledSeen) bool { return i.slot == *e.Slot && !i.Ended.IsZero() })
			if in == nil {
				if troubled(e.Verdict) && e.Kind == store.EntryVerdict && !slices.Contains(d.Others, e.Instance) {
					d.Others = append(d.Others, e.Instance)
				}
				continue
			}
			in.follow(e, d.Kind)
		}
	}
	return d
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
