package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// nobodys is the group of an extra machine whose tag names no group. Operators cannot use this
// name.
const nobodys = "(none)"

// holdForExtras puts the shard on hold when there are more machines without a record than mistakes
// explain. Then it is more likely that the records are wrong, for example restored from an old
// backup, and that the machines run real workloads (SAFE-12).
func holdForExtras(s *Snapshot, now time.Time) (Action, bool) {
	var names []string
	patience := 3 * s.Shard.Record.Settings.ProviderPoll.D()
	for _, x := range s.Extras {
		if !x.Stray && !x.Lost && now.Sub(x.Since) >= patience { // holdForDamage counts lost records
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
	why := fmt.Sprintf("%d machines have our tag and no record, and %d have one: the records may be older than the "+
		"machines; look at them before the release, and adopt those that are to stay: leasehold instance adopt: %s",
		seen, s.Recorded, reason.Names(names))
	rec := s.Shard.Record
	rec.Hold = &store.Hold{By: "leasehold", Why: why, At: now.UTC(), Extras: seen}
	return Action{
		Rule: "SAFE-12", Effect: effect(store.EffectHold), Why: why, Counterfactual: counterfactual("SAFE-12", ""),
		Conditions: []store.Condition{s.Shard.Unchanged()},
		Writes:     []store.Write{store.Put(s.Shard.Key, store.Encode(rec))},
	}, true
}

// planExtras adopts machines without a record for removal, once they have been listed for long
// enough, so that they are removed like any other (REC-8). The record comes first, so that only one
// leader succeeds.
func planExtras(s *Snapshot, now time.Time) (actions []Action, next time.Time) {
	grace := s.Shard.Record.Settings.OrphanGrace.D()
	extras := slices.SortedFunc(slices.Values(s.Extras),
		func(a, b Extra) int { return strings.Compare(a.Instance, b.Instance) })
	for _, x := range extras {
		known := x.Since.Add(3 * s.Shard.Record.Settings.ProviderPoll.D()) // see holdForExtras
		if !x.mayGo() || x.Paused {
			next = Sooner(next, laterOf(now, known))
			continue
		}
		due := x.Since.Add(grace)
		// by wall clocks, which can at most add a second grace period
		if r := s.Shard.Record.Reviewed; r != nil {
			due = store.Later(due, now.Add(grace-min(grace, max(0, now.UTC().Sub(r.At)))))
		}
		due = store.Later(due, s.GraceEnd)
		if !x.Gone { // the note makes its agent stop: it is no stray
			due = store.Later(due, s.UnnotedUntil)
		}
		if now.Before(due) {
			next = Sooner(next, Sooner(due, laterOf(now, known)))
			continue
		}
		why := store.Cause{
			Kind: store.CauseExtra, Name: x.Provider, For: store.Duration(now.Sub(x.Since).Round(time.Second)),
			Other: x.unwanted(),
		}
		if x.Group == "" {
			x.Group = nobodys
		}
		rec := store.Instance{
			Schema: store.Schema, ID: x.Instance, Group: x.Group, Slot: -1, Phase: store.Deleting, Zone: x.Zone,
			Ref: x.Ref, Site: x.Site, Called: true,
			Since: now.UTC(), Created: now.UTC(),
			Spec: store.InstanceSpec{Provider: x.Provider},
			Last: store.Decision{
				Rule: "REC-8", What: reason.Effect(effect(store.EffectExtra)), Why: reason.Short(why), Cause: why,
				Revision: s.Revision, At: now.UTC(),
			},
		}
		key := s.Keys.Instance(x.Instance)
		actions = append(actions, Action{
			Group: x.Group, Instance: x.Instance, Rule: "REC-8", Effect: effect(store.EffectExtra),
			Why: reason.Short(why), Cause: why,
			To: store.Deleting, Counterfactual: counterfactual("REC-8", ""),
			Facts: []store.Fact{x.machine(), {Kind: store.FactOrphanGrace, For: store.Duration(grace)}},
			Conditions: []store.Condition{
				store.Absent(key), store.Absent(s.Keys.Stray(x.Instance)),
				s.Shard.Unchanged(),
			},
			Writes: []store.Write{store.Put(key, store.Encode(rec))},
		})
	}
	return actions, next
}

// laterOf returns a time if it is still to come, else zero.
func laterOf(now, at time.Time) time.Time {
	if at.After(now) {
		return at
	}
	return time.Time{}
}

func (x *Extra) machine() store.Fact {
	return store.Fact{Kind: store.FactMachine, Name: x.Provider, Text: x.Ref}
}

// unwanted returns the evidence that the machine is not wanted.
func (x *Extra) unwanted() string {
	switch {
	case x.Gone:
		return reason.ExtraDeleted
	case x.Replaced:
		return reason.ExtraReplaced
	default:
		return reason.ExtraNoGroup
	}
}

// adopt adopts an extra machine into its group, as an operator ordered (REC-8): into the slot that
// the order names, else the machine's former slot, else a free one, else on demand. Its template
// comes from its claim; without a claim, a roll replaces it later.
func (d *orders) adopt(r store.Versioned[store.Request]) {
	i := slices.IndexFunc(d.g.Extras, func(x Extra) bool { return x.Instance == r.Record.Instance })
	if i < 0 || d.spec == nil {
		d.actions = append(d.actions, refuse(r, "no machine of this name is known to be extra"))
		return
	}
	x := &d.g.Extras[i]
	if why := d.cannotAdopt(r, x); why != "" {
		d.actions = append(d.actions, refuse(r, why))
		return
	}
	rec := d.newRecord(nil,
		motive{store.PurposeAdopt, "REC-8", store.Cause{Kind: store.CauseAdopted, By: r.Record.By}})
	template, config := rec.Template, rec.Config
	rec.ID, rec.Phase, rec.Zone, rec.Ref, rec.Called, rec.Template = x.Instance, store.Booting, x.Zone, x.Ref, true,
		templateUnknown
	rec.Site = x.Site
	rec.Config, rec.Spec.Provider = "", x.Provider // the machine's provider, whatever the group's is by now
	facts := append(requested(r), x.machine())
	if c := x.Claim; c != nil {
		rec.Template, rec.Relaunch = c.Template, c.Relaunch
		if d.divided() {
			rec.Spec.Spot, rec.Fallback = c.Spot, c.Fallback
		}
		if c.Template == template && c.Config == config {
			rec.Config = config
		}
		if !c.Created.IsZero() {
			rec.Created = c.Created
		}
		facts = append(facts, store.Fact{Kind: store.FactClaim, Count: c.Slot, Name: c.Template})
	}
	what := effect(store.EffectAdopted)
	sl, wait := d.adoptInto(r, x)
	if wait {
		return // decided on the next cache
	}
	if sl != nil {
		rec.Managed, rec.Slot, rec.Replaces = true, sl.number, sl.deserted(x)
		sl.Record.Vacated = nil
		what = store.Effect{Kind: store.EffectAdoptedInto, Count: sl.number}
	}
	m := d.join(rec)
	a := Action{
		Group: d.g.Name, Instance: x.Instance, Slot: rec.Place(), Rule: "REC-8", Effect: what, Why: rec.Last.Why,
		To: store.Booting, Counterfactual: counterfactual("REC-16", ""),
		Facts:      facts,
		Conditions: append(d.common(), store.Absent(m.Key), r.Unchanged()),
		Writes: []store.Write{
			store.Put(m.Key, store.Encode(rec)), store.Delete(r.Key),
			store.Delete(d.s.Keys.Stray(x.Instance)), store.Delete(d.s.Keys.Extra(x.Instance)),
			store.Delete(d.s.Keys.Gone(m.Key)),
		},
	}
	if sl != nil {
		d.writeSlot(&a, sl)
	}
	d.actions = append(d.actions, a)
}

// cannotAdopt returns why an order to adopt contradicts what is known; "" if it does not.
func (d *orders) cannotAdopt(r store.Versioned[store.Request], x *Extra) string {
	of := x.Group
	if x.Claim != nil {
		of = x.Claim.Group
	}
	n := r.Record.Slot
	own, _, known := x.place()
	switch {
	case r.Record.Group != "" && of != "" && r.Record.Group != of:
		return fmt.Sprintf("it belongs to group %s, and the order names %s", of, r.Record.Group)
	case n == nil:
		return ""
	case *n < 0 || *n >= d.spec.Size && !(known && *n == own && d.hasPlace(*n, x)):
		return fmt.Sprintf("there is no slot %d: the group's size is %d", *n, d.spec.Size)
	}
	if sl := d.slots.get(*n); sl != nil && sl.used() && sl.deserted(x) == "" {
		return fmt.Sprintf("slot %d has an instance: %s", *n, sl.members[0].ID())
	}
	return ""
}

// adoptInto returns the slot for a machine; nil: it is adopted on demand. wait reports whether
// another action of this plan changes that slot.
func (d *orders) adoptInto(r store.Versioned[store.Request], x *Extra) (sl *slot, wait bool) {
	if d.spec.Deleting || d.spec.Stopped || x.Provider == store.ProviderNone {
		return nil, false
	}
	if r.Record.Slot != nil {
		sl = d.slot(*r.Record.Slot)
		return sl, sl.touched
	}
	n, onDemand, known := x.place()
	if known && !onDemand && (n < d.spec.Size || d.hasPlace(n, x)) {
		if sl = d.slots.get(n); sl == nil || (!sl.used() || sl.deserted(x) != "") &&
			(sl.damaged == nil || sl.damaged.Instance == x.Instance) {
			sl = d.slot(n)
			return sl, sl.touched
		}
	}
	if onDemand && r.Record.Group == "" {
		return nil, false
	}
	if missing := d.spec.Size - d.inUse(); missing > 0 {
		sl = d.idle(missing)[0]
		return sl, sl.touched
	}
	return nil, false
}

// hasPlace reports whether a machine may have its former slot back although the number exceeds the
// size, for example after the group has shrunk: its lost record holds the slot, or the group lacks
// an instance.
func (f *fleet) hasPlace(n int, x *Extra) bool {
	if sl := f.slots.get(n); sl != nil && sl.damaged != nil {
		return sl.damaged.Instance == x.Instance
	}
	return f.inUse() < f.spec.Size
}

// deserted returns the instance whose slot a machine may take because the machine's claim has that
// slot: the record comes from an older copy of etcd's data, its agent has no session, and two Lists
// in a row show its machine as missing or down. It returns "" if there is no such instance, or if
// the slot has another one.
func (sl *slot) deserted(x *Extra) (id string) {
	if x.Claim == nil || x.Claim.Slot != sl.number {
		return ""
	}
	for _, m := range sl.members {
		if m.gone() {
			continue
		}
		if m.phase == store.Pending || m.phase == store.Creating || m.Alive.Present() ||
			m.Sighting.Listed && !m.Sighting.Down || m.Sighting.Times < 2 {
			return ""
		}
		id = m.ID()
	}
	return id
}

// place returns where a machine without a record was: by its claim, else by its name.
func (x *Extra) place() (slot int, onDemand, known bool) {
	if c := x.Claim; c != nil {
		return c.Slot, c.Slot < 0, true
	}
	group, slot, onDemand, known := store.PlaceOf(x.Instance)
	return slot, onDemand, known && (x.Group == "" || group == x.Group)
}
