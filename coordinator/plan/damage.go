package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// maxDamaged limits the list of damaged records in a status. All of them are counted.
const maxDamaged = 200

// aliveMargin is how much longer than any lease an unreadable alive key without a lease is kept.
const aliveMargin = 10 * time.Second

// damage protects the machines that lost and unreadable records may describe.
type damage struct {
	*draft
	frozen   store.BlockedKind // why creation and deletion are forbidden in the group; "" if they are allowed
	frozenBy store.BlockedFacts
	damaged  int // lost or unreadable records, minus the acknowledged ones
}

// holdForDamage puts the shard on hold when two or more records are lost or unreadable, or updates
// the count of a hold if there are more by now (SAFE-15). An operator's own hold gets the count
// too, so that its release acknowledges what was shown. A single record is enough if it is unknown
// which record is lost, or which slot it had: then there may be nothing to repair or adopt, and a
// release is the only way to continue.
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
	why := fmt.Sprintf("%s lost or cannot be read, and not deleted on purpose: %s; "+
		"leasehold repair restores them, or look at the machines and release the hold",
		reason.Counted(len(names), "record is", "records are"), reason.Names(names))
	hold := store.Hold{By: "leasehold", At: now.UTC()}
	if rec.Hold != nil {
		hold = *rec.Hold
	}
	hold.Damage, hold.Seen = len(names), s.Revision
	if hold.By == "leasehold" {
		hold.Why = why
	}
	what := effect(store.EffectHold)
	if rec.Hold != nil {
		what = effect(store.EffectMoreDamage)
	}
	rec.Hold = &hold
	return Action{
		Rule: "SAFE-15", Effect: what, Why: why, Counterfactual: counterfactual("SAFE-15", ""),
		Conditions: []store.Condition{s.Shard.Unchanged()},
		Writes:     []store.Write{store.Put(s.Shard.Key, store.Encode(rec))},
	}, true
}

// stale reports whether the cache must not be used to destroy anything (SAFE-3).
func (s *Snapshot) stale() bool { return s.Stale.Kind != "" }

// follow protects the slots of damaged records: they count as filled, and nothing is created or
// deleted for them. If a slot is unknown, the whole group is protected. The slot of a lost record
// is free once an operator has acknowledged the loss.
func (d *damage) follow() {
	for i := range d.g.Damaged {
		x := &d.g.Damaged[i]
		if x.What == store.DamageLost && x.Reviewed(&d.s.Shard.Record) {
			continue
		}
		d.damaged++
		switch {
		case x.OnDemand:
			d.block("SAFE-15", task{work: store.WorkInstance, instance: x.Instance}, store.BlockedByDamage,
				store.BlockedFacts{Cause: reason.Known(x.Cause, x.Why)})
		case x.Slot == nil:
			d.freeze(store.BlockedByDamage, store.BlockedFacts{Cause: reason.Known(x.Cause, x.Why)})
		default:
			sl := d.slot(*x.Slot)
			d.block("SAFE-15", task{work: store.WorkSlot, instance: x.Instance, slot: sl.number}, store.BlockedByDamage,
				store.BlockedFacts{Cause: reason.Known(x.Cause, x.Why)})
			if sl.damaged == nil {
				sl.filled++
				d.counts.filled++
				d.counts.machines++
			}
			sl.damaged = x
		}
	}
	if p := d.g.Unlisted; p != "" {
		d.freeze(store.BlockedByMissingList, store.BlockedFacts{Name: p})
	}
}

// freeze forbids creation and deletion in the whole group, for a reason. The first reason is kept.
func (d *damage) freeze(why store.BlockedKind, of store.BlockedFacts) {
	if d.frozen == "" {
		d.frozen, d.frozenBy = why, of
	}
}

// writeSlotsBack restores slots that cannot be read, and reports whether there are any.
func (d *damage) writeSlotsBack() bool {
	for i := range d.g.SlotsSpoiled {
		sl := &d.g.SlotsSpoiled[i]
		why := store.Cause{Kind: store.CauseUnreadable, Text: sl.Why}
		d.actions = append(d.actions, Action{
			Group: d.g.Name, Slot: &sl.Record.Number, Rule: "SAFE-16",
			Effect: effect(store.EffectSlotWritten), Why: reason.Short(why), Cause: why,
			Conditions: []store.Condition{sl.Unchanged()},
			Writes:     []store.Write{store.Put(sl.Key, store.Encode(sl.Record))},
		})
	}
	return len(d.g.SlotsSpoiled) > 0
}

// untouchable reports whether nothing may be created, restarted or removed for a member: its slot
// is damaged, or its group is frozen.
func (d *damage) untouchable(m *member) bool {
	return d.frozen != "" || m.slot != nil && m.slot.damaged != nil
}

// spareDamaged drops actions on damaged slots. Most deciders skip such slots; this is the
// guarantee.
func (d *damage) spareDamaged() {
	if d.damaged == 0 && d.frozen == "" {
		return
	}
	d.actions = slices.DeleteFunc(d.actions, func(a Action) bool {
		if a.Rule == "REC-8" || !d.interferes(&a) { // an adopted machine takes its place again
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
func (d *damage) interferes(a *Action) bool {
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
		// A replacement is written by an action on the instance that it replaces, whose phase may
		// stay the same.
		kind, _, _ := d.s.Keys.Split(w.Key)
		return kind == store.KindInstances && slices.Contains(a.Conditions, store.Absent(w.Key))
	})
}

// countRecords counts the instances with a record, and lists the damaged ones. While records are
// missing and it is unknown which, the previous count stays: it is the only evidence of them. A
// group that waits for a provider's List is counted only after that List.
func (d *status) countRecords(st *store.Status) {
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
		if len(st.Damaged) < maxDamaged {
			recorded := *x
			recorded.Why = reason.Text(x.Cause, x.Why)
			st.Damaged = append(st.Damaged, recorded)
		}
	}
	st.Records, st.Counted = &n, d.s.Revision
	if old := &d.g.Status.Record; d.g.Unlisted != "" || unknown && old.Records != nil {
		st.Records, st.Counted = old.Records, old.Counted
	}
}

// sameRecords reports whether the status need not be written for its count of records. A count from
// before a release is written again: otherwise nothing would distinguish records that the operator
// acknowledged from later losses.
func (d *status) sameRecords(a, b *store.Status) bool {
	if (a.Records == nil) != (b.Records == nil) || a.Records != nil && *a.Records != *b.Records {
		return false
	}
	if r := d.s.Shard.Record.Reviewed; r != nil && r.Seen != 0 && a.Counted <= r.Seen && b.Counted > r.Seen {
		return false
	}
	return slices.EqualFunc(a.Damaged, b.Damaged, func(x, y store.Damaged) bool {
		return x.Key == y.Key && x.What == y.What && x.Why == y.Why && x.Cause == y.Cause && x.Last == y.Last &&
			x.Seen == y.Seen
	})
}

// dropAlive removes unreadable alive keys that have no lease: no replica wrote them, and the
// agent's replica has had time to overwrite them (SAFE-16).
func (d *damage) dropAlive() {
	if d.s.stale() {
		return
	}
	for _, m := range d.members {
		if m.AliveUnreadable == "" || m.Alive.Lease != 0 || m.AliveSpoiled.IsZero() {
			continue
		}
		due := m.AliveSpoiled.Add(m.Record.Spec.Report.LeaseTTL.D() + d.s.SessionTTL + aliveMargin)
		due = store.Later(due, d.s.GraceEnd)
		if d.now.Before(due) {
			d.wake(due)
			continue
		}
		why := store.Cause{Kind: store.CauseSpoiledAlive, Text: m.AliveUnreadable}
		d.actions = append(d.actions, Action{
			Group: d.g.Name, Instance: m.ID(), Slot: m.Record.Place(), Rule: "SAFE-16",
			Effect: effect(store.EffectAliveRemoved), Why: reason.Short(why), Cause: why,
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

// GoneWrites returns the notes of actions that share a transaction. They precede all other writes,
// so that a watcher sees the note before the deletion.
func GoneWrites(together []*Action, lease store.LeaseID) []store.Write {
	var out []store.Write
	for _, a := range together {
		for _, g := range a.Gone {
			out = append(out, store.PutLeased(g.Key, store.Encode(g.Note), lease))
		}
	}
	return out
}

// Deletes reports whether a transaction of these actions needs the lease for notes.
func Deletes(together []*Action) bool {
	return slices.ContainsFunc(together, func(a *Action) bool { return len(a.Gone) > 0 })
}

// noteDeletions adds to each action the notes of the records that it deletes. It does so in one
// place, so that no decider can forget one.
func noteDeletions(s *Snapshot, actions []Action, now time.Time) {
	for i := range actions {
		a := &actions[i]
		for _, w := range a.Writes {
			if !w.Delete || !noted(s.Keys, w.Key) {
				continue
			}
			note := store.Gone{
				Schema: store.Schema, Revision: revisionOf(a, w.Key), Rule: a.Rule, Why: a.Why,
				Group: a.Group, Instance: a.Instance, Slot: a.Slot, At: now.UTC(),
			}
			if kind, _, _ := s.Keys.Split(w.Key); kind == store.KindRequests {
				note.Instance, note.Slot = "", nil
			}
			a.Gone = append(a.Gone, GoneNote{Key: s.Keys.Gone(w.Key), Note: note})
		}
	}
}

// noted reports whether the deletion of a key leaves a note.
func noted(keys store.Keys, key string) bool {
	switch kind, name, _ := keys.Split(key); kind {
	case store.KindInstances, store.KindSlots, store.KindStatus, store.KindGroups, store.KindStatic:
		return true
	case store.KindRequests:
		return store.IsOnce(name)
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
