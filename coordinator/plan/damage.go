package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

// mostDamaged bounds the list of damaged records in a status. All of them are counted.
const mostDamaged = 200

// aliveMargin is how much longer than any lease an unreadable alive key without a lease stays.
const aliveMargin = 10 * time.Second

// holdForDamage puts the shard on hold when two or more records are lost or unreadable, or counts
// again if there are more by now (SAFE-15). An operator's own hold gets the count too, so that its
// release acknowledges what was shown. It does so of one record alone where it is not known which
// is lost, or whose slot it had: there may be nothing to repair or to adopt then, and no other way
// on.
func holdForDamage(s *Snapshot, now time.Time) (Action, bool) {
	if !s.Shard.Present() || s.ShardUnreadable {
		return Action{}, false
	}
	var names []string
	newest, unknown := store.Revision(0), false
	for i := range s.Damaged {
		if d := &s.Damaged[i]; !d.Reviewed(&s.Shard.Record) {
			names = append(names, d.Key)
			newest, unknown = max(newest, d.Seen), unknown || d.What == store.DamageLost && d.Slot == nil && !d.OnDemand
		}
	}
	rec := s.Shard.Record
	if len(names) < 2 && (rec.Hold == nil || !unknown) || rec.Hold != nil && rec.Hold.Damage >= len(names) &&
		rec.Hold.Seen >= newest {
		return Action{}, false
	}
	are := fmt.Sprintf("%d records are", len(names))
	if len(names) == 1 {
		are = "1 record is"
	}
	why := fmt.Sprintf("%s lost or cannot be read, and not deleted on purpose: %s; "+
		"leasehold repair restores them, or look at the machines and release the hold", are, listed(names))
	hold := store.Hold{By: "leasehold", At: now.UTC()}
	if rec.Hold != nil {
		hold = *rec.Hold
	}
	hold.Damage, hold.Seen = len(names), s.Revision
	if hold.By == "leasehold" {
		hold.Why = why
	}
	what := "shard put on hold"
	if rec.Hold != nil {
		what = "more damage during the hold"
	}
	rec.Hold = &hold
	return Action{
		Rule: "SAFE-15", What: what, Why: why, Counterfactual: counterfactual("SAFE-15", ""),
		Conditions: []store.Condition{s.Shard.Unchanged()},
		Writes:     []store.Write{store.Put(s.Shard.Key, store.Encode(rec))},
	}, true
}

// takeDamage protects the slots of damaged records: they count as filled, and nothing is created or
// deleted for them. Where a slot is not known, that holds for the whole group. The slot of a lost
// record that an operator has acknowledged is free.
func (d *draft) takeDamage() {
	for i := range d.g.Damaged {
		x := &d.g.Damaged[i]
		if x.What == store.DamageLost && x.Reviewed(&d.s.Shard.Record) {
			continue
		}
		d.damaged++
		switch {
		case x.OnDemand:
			d.block("SAFE-15", task{work: store.WorkInstance, instance: x.Instance}, store.BlockedByDamage,
				store.BlockedFacts{Text: x.Why})
		case x.Slot == nil:
			d.freeze(store.BlockedByDamage, store.BlockedFacts{Text: x.Why})
		default:
			sl := d.slot(*x.Slot)
			d.block("SAFE-15", task{work: store.WorkSlot, instance: x.Instance, slot: sl.number}, store.BlockedByDamage,
				store.BlockedFacts{Text: x.Why})
			if sl.damaged == nil {
				sl.filled++
				d.counts.filled++
				d.counts.standing++
			}
			sl.damaged = x
		}
	}
	if p := d.g.Unlisted; p != "" {
		d.freeze(store.BlockedByMissingList, store.BlockedFacts{Name: p})
	}
}

// freeze keeps everything in the group from being created or deleted, until something happens. The
// first reason stands.
func (d *draft) freeze(why store.BlockedKind, of store.BlockedFacts) {
	if d.frozen == "" {
		d.frozen, d.frozenBy = why, of
	}
}

// writeSlotsBack restores slots that cannot be read, and reports whether there are any.
func (d *draft) writeSlotsBack() bool {
	for i := range d.g.SlotsSpoiled {
		sl := &d.g.SlotsSpoiled[i]
		d.actions = append(d.actions, Action{
			Group: d.g.Name, Slot: &sl.Record.Number, Rule: "SAFE-16",
			What:       "slot written anew",
			Why:        "it could not be read: " + sl.Why,
			Conditions: []store.Condition{sl.Unchanged()},
			Writes:     []store.Write{store.Put(sl.Key, store.Encode(sl.Record))},
		})
	}
	return len(d.g.SlotsSpoiled) > 0
}

// untouchable reports whether nothing may be created, restarted or removed for a member: its slot
// is damaged, or its group is frozen.
func (d *draft) untouchable(m *member) bool {
	return d.frozen != "" || m.slot != nil && m.slot.damaged != nil
}

// spareDamaged leaves out what was decided for damaged slots. Deciders pass most of them over; this
// is what makes sure of it.
func (d *draft) spareDamaged() {
	if d.damaged == 0 && d.frozen == "" {
		return
	}
	d.actions = slices.DeleteFunc(d.actions, func(a Action) bool {
		if a.Rule == "REC-8" || !d.interferes(&a) { // what is adopted takes its place again
			return false
		}
		sl := (*slot)(nil)
		if a.Slot != nil {
			sl = d.slots.get(*a.Slot)
		}
		return d.frozen != "" || sl != nil && sl.damaged != nil
	})
}

// interferes reports whether an action creates, restarts or removes anything.
func (d *draft) interferes(a *Action) bool {
	switch a.To {
	case store.Pending, store.Stopping, store.Draining, store.Deleting:
		if a.From != a.To {
			return true
		}
	default:
	}
	return slices.ContainsFunc(a.Writes, func(w store.Write) bool {
		if w.Delete {
			return noted(d.s.Keys, w.Key)
		}
		// A replacement is written by an action of the instance that it replaces, which may keep
		// its phase.
		kind, _, _ := d.s.Keys.Split(w.Key)
		return kind == store.KindInstances && slices.Contains(a.Conditions, store.Absent(w.Key))
	})
}

// countRecords counts the instances with a record, and lists the damaged ones. While records are
// missing and it is not known which, the old count stays: it is the only evidence of them. A group
// that waits for a provider's List is not counted before that.
func (d *draft) countRecords(st *store.Status) {
	n, unknown := len(d.g.Instances), false
	for i := range d.g.Damaged {
		x := &d.g.Damaged[i]
		if x.Instance == "" {
			unknown = true
			continue
		}
		if x.What == store.DamageUnreadable || x.Last != 0 && !x.Reviewed(&d.s.Shard.Record) {
			n++
		}
		if len(st.Damaged) < mostDamaged {
			st.Damaged = append(st.Damaged, *x)
		}
	}
	st.Records, st.Counted = &n, d.s.Revision
	if old := &d.g.Status.Record; d.g.Unlisted != "" || unknown && old.Records != nil {
		st.Records, st.Counted = old.Records, old.Counted
	}
}

// sameRecords reports whether a status need not be written for its count of records. One that was
// counted before a release is counted again: else what the operator acknowledged could not be told
// from what is lost later.
func (d *draft) sameRecords(a, b *store.Status) bool {
	if (a.Records == nil) != (b.Records == nil) || a.Records != nil && *a.Records != *b.Records {
		return false
	}
	if r := d.s.Shard.Record.Reviewed; r != nil && r.Seen != 0 && a.Counted <= r.Seen && b.Counted > r.Seen {
		return false
	}
	return slices.EqualFunc(a.Damaged, b.Damaged, func(x, y store.Damaged) bool {
		return x.Key == y.Key && x.What == y.What && x.Why == y.Why && x.Last == y.Last && x.Seen == y.Seen
	})
}

// dropAlive removes unreadable alive keys that hang on no lease: no replica wrote them, and an
// agent's replica has had time to write over them (SAFE-16).
func (d *draft) dropAlive() {
	if d.s.Stale != "" {
		return
	}
	for _, m := range d.members {
		if m.AliveUnreadable == "" || m.Alive.Lease != 0 || m.AliveSpoiled.IsZero() {
			continue
		}
		due := m.AliveSpoiled.Add(m.Record.Spec.Report.LeaseTTL.D() + d.s.SessionTTL + aliveMargin)
		due = later(due, d.s.GraceEnd)
		if d.now.Before(due) {
			d.wake(due)
			continue
		}
		d.actions = append(d.actions, Action{
			Group: d.g.Name, Instance: m.ID(), Slot: m.Record.Place(), Rule: "SAFE-16",
			What:       "unreadable alive key removed",
			Why:        "no lease ends it, and no replica has written it anew: " + m.AliveUnreadable,
			Conditions: []store.Condition{m.Alive.Unchanged(), m.Unchanged()},
			Writes:     []store.Write{store.Delete(m.Alive.Key)},
		})
	}
}

// GoneNote is the proof that an action deletes a record on purpose (SAFE-15).
type GoneNote struct {
	Key  string // of the note
	Note store.Gone
}

// GoneWrites are the notes of actions that share a transaction. They go before all other writes of
// it, so that a watcher sees the note before the deletion.
func GoneWrites(together []*Action, lease store.LeaseID) []store.Write {
	var out []store.Write
	for _, a := range together {
		for _, g := range a.Gone {
			out = append(out, store.PutLeased(g.Key, store.Encode(g.Note), lease))
		}
	}
	return out
}

// Deletes reports whether a transaction of these actions needs the lease that notes are written on.
func Deletes(together []*Action) bool {
	return slices.ContainsFunc(together, func(a *Action) bool { return len(a.Gone) > 0 })
}

// noteDeletions adds to each action the notes of the records that it deletes. That is done here for
// all of them, so that no decider can forget one.
func noteDeletions(s *Snapshot, actions []Action, now time.Time) {
	for i := range actions {
		a := &actions[i]
		for _, w := range a.Writes {
			if !w.Delete || !noted(s.Keys, w.Key) {
				continue
			}
			a.Gone = append(a.Gone, GoneNote{Key: s.Keys.Gone(w.Key), Note: store.Gone{
				Schema: store.Schema, Revision: revisionOf(a, w.Key), Rule: a.Rule, Why: a.Why,
				Group: a.Group, Instance: a.Instance, Slot: a.Slot, At: now.UTC(),
			}})
		}
	}
}

// noted reports whether the deletion of a key leaves a note.
func noted(keys store.Keys, key string) bool {
	switch kind, _, _ := keys.Split(key); kind {
	case store.KindInstances, store.KindSlots, store.KindStatus, store.KindGroups, store.KindStatic:
		return true
	default:
		return false
	}
}

// revisionOf is the revision at which an action compares a key.
func revisionOf(a *Action, key string) store.Revision {
	for _, c := range a.Conditions {
		if c.Key == key && c.Modified != 0 {
			return c.Modified
		}
	}
	return 0
}

// nobodys is the group of an extra machine whose tag names none. No operator can name a group so.
const nobodys = "(none)"

// holdForExtras puts the shard on hold when there are more machines without a record than
// mistakes explain: then rather the records are wrong, restored from an old backup say, and the
// machines run real workloads (SAFE-12).
func holdForExtras(s *Snapshot, now time.Time) (Action, bool) {
	var names []string
	patience := 3 * s.Shard.Record.Settings.ProviderPoll.D()
	for _, x := range s.Extras {
		if !x.Stray && !x.Lost && now.Sub(x.Since) >= patience { // what was lost is counted by holdForDamage
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
		seen, s.Recorded, listed(names))
	rec := s.Shard.Record
	rec.Hold = &store.Hold{By: "leasehold", Why: why, At: now.UTC(), Extras: seen}
	return Action{
		Rule: "SAFE-12", What: "shard put on hold", Why: why, Counterfactual: counterfactual("SAFE-12", ""),
		Conditions: []store.Condition{s.Shard.Unchanged()},
		Writes:     []store.Write{store.Put(s.Shard.Key, store.Encode(rec))},
	}, true
}

// planExtras takes up machines without a record, once they were seen for long enough, so that
// they are removed like any other (REC-8). The record comes first, so that one wins.
func planExtras(s *Snapshot, now time.Time) (actions []Action, next time.Time) {
	grace := s.Shard.Record.Settings.OrphanGrace.D()
	extras := slices.SortedFunc(slices.Values(s.Extras),
		func(a, b Extra) int { return strings.Compare(a.Instance, b.Instance) })
	for _, x := range extras {
		known := x.Since.Add(3 * s.Shard.Record.Settings.ProviderPoll.D()) // see holdForExtras
		if !x.mayGo() || x.Paused {
			next = sooner(next, laterOf(now, known))
			continue
		}
		due := x.Since.Add(grace)
		// by wall clocks, which can only make it wait for another whole grace
		if r := s.Shard.Record.Reviewed; r != nil {
			due = later(due, now.Add(grace-min(grace, max(0, now.UTC().Sub(r.At)))))
		}
		due = later(due, s.GraceEnd)
		if !x.Gone { // with a note its agent is told to stop, and is no stray
			due = later(due, s.UnnotedUntil)
		}
		if now.Before(due) {
			next = sooner(next, sooner(due, laterOf(now, known)))
			continue
		}
		why := fmt.Sprintf("%s lists it with our tag since %s, there is no record of it, and %s", x.Provider,
			now.Sub(x.Since).Round(time.Second), x.unwanted())
		if x.Group == "" {
			x.Group = nobodys
		}
		rec := store.Instance{
			Schema: store.Schema, ID: x.Instance, Group: x.Group, Slot: -1, Phase: store.Deleting, Zone: x.Zone,
			Ref: x.Ref, Site: x.Site, Called: true,
			Since: now.UTC(), Created: now.UTC(),
			Spec: store.InstanceSpec{Provider: x.Provider},
			Last: store.Decision{Rule: "REC-8", What: "extra machine is removed", Why: why, Revision: s.Revision, At: now.UTC()},
		}
		key := s.Keys.Instance(x.Instance)
		actions = append(actions, Action{
			Group: x.Group, Instance: x.Instance, Rule: "REC-8", What: "extra machine is removed", Why: why,
			To: store.Deleting, Counterfactual: counterfactual("REC-8", ""),
			Evidence: []string{"provider " + x.Provider + " ref " + x.Ref, "orphan_grace " + grace.String()},
			Conditions: []store.Condition{
				store.Absent(key), store.Absent(s.Keys.Stray(x.Instance)),
				s.Shard.Unchanged(),
			},
			Writes: []store.Write{store.Put(key, store.Encode(rec))},
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

// unwanted describes how it is known that the machine is not wanted.
func (x *Extra) unwanted() string {
	switch {
	case x.Gone:
		return "its record was deleted on purpose"
	case x.Replaced:
		return "another instance has its slot"
	default:
		return "its group was deleted on purpose"
	}
}

// adopt takes an extra machine into its group, as an operator ordered (REC-8): into the slot that
// the order names, else the one that the machine had, else a free one, else on demand. What it was
// made from its claim tells; where there is none, a roll replaces it in time.
func (d *draft) adopt(r store.Versioned[store.Request]) {
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
	rec := d.newRecord(nil, "REC-8", store.Cause{Kind: store.CauseAdopted, By: r.Record.By})
	template, config := rec.Template, rec.Config
	rec.ID, rec.Phase, rec.Zone, rec.Ref, rec.Called, rec.Template = x.Instance, store.Booting, x.Zone, x.Ref, true,
		templateUnknown
	rec.Site = x.Site
	rec.Config, rec.Spec.Provider = "", x.Provider // whose machine it is, whatever the group's are by now
	evidence := []string{"request " + r.Record.ID, "provider " + x.Provider + " ref " + x.Ref}
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
		evidence = append(evidence, fmt.Sprintf("claim of slot %d, template %s", c.Slot, c.Template))
	}
	what := "adopted on demand"
	sl, wait := d.adoptInto(r, x)
	if wait {
		return // decided on the next cache
	}
	if sl != nil {
		rec.Managed, rec.Slot, rec.Replaces = true, sl.number, sl.deserted(x)
		sl.Record.Vacated = nil
		what = fmt.Sprintf("adopted into slot %d", sl.number)
	}
	m := d.join(rec)
	a := Action{
		Group: d.g.Name, Instance: x.Instance, Slot: rec.Place(), Rule: "REC-8", What: what, Why: rec.Last.Why,
		To: store.Booting, Counterfactual: counterfactual("REC-16", ""),
		Evidence:   evidence,
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

// cannotAdopt returns why an order to adopt contradicts what is known, or "".
func (d *draft) cannotAdopt(r store.Versioned[store.Request], x *Extra) string {
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
func (d *draft) adoptInto(r store.Versioned[store.Request], x *Extra) (sl *slot, wait bool) {
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

// hasPlace reports whether a machine may have its old slot back although the number is beyond the
// size, as after the group has shrunk: its lost record holds the slot, or the group lacks one.
func (d *draft) hasPlace(n int, x *Extra) bool {
	if sl := d.slots.get(n); sl != nil && sl.damaged != nil {
		return sl.damaged.Instance == x.Instance
	}
	return d.inUse() < d.spec.Size
}

// deserted returns the instance whose slot a machine may take because its claim has that slot: the
// record is from an older copy of etcd's data, its agent has no session, and two Lists in a row
// show no machine of it, or one that is down. "" if there is no such instance, or another one is
// there.
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

// place is where a machine without a record was: by its claim, else by its own name.
func (x *Extra) place() (slot int, onDemand, known bool) {
	if c := x.Claim; c != nil {
		return c.Slot, c.Slot < 0, true
	}
	group, slot, onDemand, known := PlaceOf(x.Instance)
	return slot, onDemand, known && (x.Group == "" || group == x.Group)
}

// PlaceOf reads from an instance's ID which group and slot it was made for: see newID.
func PlaceOf(id string) (group string, slot int, onDemand, known bool) {
	rest, letters, ok := cutLast(id)
	if !ok || letters == "" {
		return "", 0, false, false
	}
	group, place, ok := cutLast(rest)
	if !ok || group == "" {
		return "", 0, false, false
	}
	if place == "x" {
		return group, -1, true, true
	}
	slot, err := strconv.Atoi(place)
	return group, slot, false, err == nil && slot >= 0
}

func cutLast(s string) (before, after string, found bool) {
	if i := strings.LastIndexByte(s, '-'); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}
