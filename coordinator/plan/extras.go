package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

// nobodys is the group of an extra machine whose tag names none. No operator can name a group so.
const nobodys = "(none)"

// holdForExtras puts the shard on hold when there are more machines that nobody recorded than mistakes explain: then rather the records
// are wrong, restored from an old backup say, and the machines are somebody's work (SAFE-12).
func holdForExtras(s *Snapshot, now time.Time) (Action, bool) {
	var names []string
	patience := 3 * s.Shard.Record.Settings.ProviderPoll.D()
	for _, x := range s.Extras {
		if !x.Stray && now.Sub(x.Since) >= patience {
			names = append(names, x.Instance)
		}
	}
	seen := len(names)
	if seen <= 1 || seen*20 <= s.Recorded {
		return Action{}, false
	}
	if r := s.Shard.Record.Reviewed; r != nil && seen <= r.Extras {
		return Action{}, false // an operator has looked at them
	}
	why := fmt.Sprintf("%d machines have our tag and no record, and %d have one: the records may be older than the machines; look at them before the release, and adopt those that are to stay: leasehold instance adopt: %s", seen, s.Recorded, listed(names))
	rec := s.Shard.Record
	rec.Hold = &store.Hold{By: "leasehold", Why: why, At: now.UTC(), Extras: seen}
	return Action{
		Rule: "SAFE-12", What: "shard put on hold", Why: why, Otherwise: otherwise("SAFE-12", ""),
		Conditions: []store.Condition{s.Shard.Unchanged()}, Writes: []store.Write{store.Put(s.Shard.Key, store.Encode(rec))},
	}, true
}

// planExtras takes up machines that nobody recorded, once they were seen for long enough, so that they are removed
// like any other (REC-8). The record comes first, so that one wins.
func planExtras(s *Snapshot, now time.Time) (actions []Action, next time.Time) {
	grace := s.Shard.Record.Settings.OrphanGrace.D()
	extras := slices.SortedFunc(slices.Values(s.Extras), func(a, b Extra) int { return strings.Compare(a.Instance, b.Instance) })
	for _, x := range extras {
		if x.Stray || x.Paused {
			continue
		}
		due := x.Since.Add(grace)
		if r := s.Shard.Record.Reviewed; r != nil { // by wall clocks, which can only make it wait for another whole grace
			due = later(due, now.Add(grace-min(grace, max(0, now.UTC().Sub(r.At)))))
		}
		due = later(due, s.GraceEnd)
		if now.Before(due) {
			next = sooner(next, sooner(due, laterOf(now, x.Since.Add(3*s.Shard.Record.Settings.ProviderPoll.D()))))
			continue
		}
		why := fmt.Sprintf("%s lists it with our tag since %s and there is no record of it", x.Provider, now.Sub(x.Since).Round(time.Second))
		if x.Group == "" {
			x.Group = nobodys
		}
		rec := store.Instance{
			Schema: store.Schema, ID: x.Instance, Group: x.Group, Slot: -1, Phase: store.Deleting, Zone: x.Zone, Ref: x.Ref, Called: true,
			Since: now.UTC(), Created: now.UTC(),
			Spec: store.InstanceSpec{Provider: x.Provider},
			Last: store.Decision{Rule: "REC-8", Why: why, Revision: s.Revision, At: now.UTC()},
		}
		key := s.Keys.Instance(x.Instance)
		actions = append(actions, Action{
			Group: x.Group, Instance: x.Instance, Rule: "REC-8", What: "extra machine is removed", Why: why, To: store.Deleting, Otherwise: otherwise("REC-8", ""),
			Evidence:   []string{"provider " + x.Provider + " ref " + x.Ref, "orphan_grace " + grace.String()},
			Conditions: []store.Condition{store.Absent(key), store.Absent(s.Keys.Stray(x.Instance)), s.Shard.Unchanged()},
			Writes:     []store.Write{store.Put(key, store.Encode(rec))},
		})
	}
	return actions, next
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// laterOf is a time that is still to come, or none.
func laterOf(now, at time.Time) time.Time {
	if at.After(now) {
		return at
	}
	return time.Time{}
}

// adopt takes an extra machine into its group, as an operator ordered: into a slot that is missing, else on demand (REC-8). What it was
// made from nobody knows, so that a roll replaces it in time.
func (d *draft) adopt(r store.Versioned[store.Request]) {
	i := slices.IndexFunc(d.g.Extras, func(x Extra) bool { return x.Instance == r.Record.Instance })
	if i < 0 || d.spec == nil {
		d.actions = append(d.actions, refuse(r, "no machine of this name is known to be extra"))
		return
	}
	x, missing := d.g.Extras[i], d.spec.Size-d.inUse()
	why := "adopted by order of " + r.Record.By
	rec := d.newRecord(nil, "REC-8", why)
	rec.ID, rec.Phase, rec.Zone, rec.Ref, rec.Called, rec.Template = x.Instance, store.Booting, x.Zone, x.Ref, true, templateUnknown
	rec.Config, rec.Spec.Provider = "", x.Provider // whose machine it is, whatever the group's are by now
	var sl *slot
	what := "adopted on demand"
	if missing > 0 && !d.spec.Deleting && !d.spec.Stopped {
		sl = d.idle(missing)[0]
		rec.Managed, rec.Slot = true, sl.number
		what = fmt.Sprintf("adopted into slot %d", sl.number)
	}
	if sl != nil && sl.touched {
		return // decided on the next picture
	}
	m := d.join(rec)
	a := Action{
		Group: d.g.Name, Instance: x.Instance, Slot: rec.Place(), Rule: "REC-8", What: what, Why: why, To: store.Booting, Otherwise: otherwise("REC-16", ""),
		Evidence:   []string{"request " + r.Record.ID, "provider " + x.Provider + " ref " + x.Ref},
		Conditions: append(d.common(), store.Absent(m.Key), r.Unchanged()),
		Writes:     []store.Write{store.Put(m.Key, store.Encode(rec)), store.Delete(r.Key)},
	}
	if sl != nil {
		d.writeSlot(&a, sl)
	}
	d.actions = append(d.actions, a)
}
