package plan

import (
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/store"
)

// finishRemovals ends the records of machines that are proved to be gone, and of those that were
// never asked for. Until then the record stays, however long that takes: it is what the next leader
// finds (SAFE-8).
func (d *draft) finishRemovals() {
	for _, m := range d.members {
		if m.Record.Phase != store.Deleting || m.Calls.Busy || d.untouchable(m) {
			continue
		}
		why, evidence, ok := d.provedGone(m)
		if !ok {
			continue
		}
		m.touched = true
		keys := d.s.Keys
		d.actions = append(d.actions, Action{
			Group: d.g.Name, Instance: m.ID(), Slot: m.Record.Place(), Rule: "SAFE-8", What: "gone", Why: why,
			Evidence: evidence, From: store.Deleting,
			Conditions: []store.Condition{m.Unchanged()},
			Writes: []store.Write{
				store.Delete(m.Key), store.Delete(keys.Alive(m.ID())), store.Delete(keys.Report(m.ID())),
				store.Delete(keys.Joined(m.ID())),
			},
		})
	}
}

func (d *draft) provedGone(m *member) (why string, evidence []string, ok bool) {
	if !m.Record.Called {
		return "no provider was ever asked for it", nil, true
	}
	see := m.Sighting
	confirmed := !m.Calls.Deleted.IsZero() && see.Begun.After(m.Calls.Deleted) && !see.Listed
	if !confirmed && !d.vanished(m) {
		return "", nil, false
	}
	if see.Begun.Before(m.Calls.AbsentFrom) {
		d.wake(m.Calls.AbsentFrom)
		d.block("SAFE-8", m.task(store.WorkForget), store.BlockedByEarlierCalls, store.BlockedFacts{})
		return "", nil, false
	}
	if !confirmed {
		failed := fmt.Sprintf("list begun %s after a removal failed", see.Begun.Sub(m.Calls.RemovalFailed).Round(1e6))
		return "its removal was never confirmed (" + m.Calls.Problem + "), but the provider lists it no more",
			[]string{providerSays(m.Instance), failed}, true
	}
	return "the provider removed it and lists it no more",
		[]string{
			providerSays(m.Instance),
			fmt.Sprintf("list begun %s after the removal", see.Begun.Sub(m.Calls.Deleted).Round(1e6)),
		}, true
}

// vanished reports whether the machine of an instance that is being deleted is gone although no
// removal of it succeeded. A provider may remove a machine and never answer within the call's
// time-out; its Lists then are the only proof. Without an answer one List is not enough, nor are a
// few that may be wrong together: its agent was told to stop, so that its silence proves nothing
// here. The machine must be absent for orphan_grace, from Lists that miss no machine whose agent
// reports.
func (d *draft) vanished(m *member) bool {
	failed, see := m.Calls.RemovalFailed, m.Sighting
	if see.Listed || failed.IsZero() || !see.Begun.After(failed) || see.Sure < 2 || m.Alive.Present() {
		return false
	}
	absent := see.Since.Add(d.s.Shard.Record.Settings.OrphanGrace.D())
	if d.now.Before(absent) {
		d.wake(absent)
		return false
	}
	return true
}

// empty removes all managed instances of a group that is stopped, or being deleted, and then a
// deleted group itself (REC-7, REC-11).
func (d *draft) empty(rule, text string) {
	why := store.Cause{Kind: store.CauseGroupEnds, Text: text}
	full := false
	for _, m := range d.members {
		if m.gone() || m.touched || !m.Record.Managed || m.phase == store.Draining {
			continue
		}
		// who goes down already takes no more room
		if !m.goingDown() && (full || !d.mayDelete(m.task(store.WorkDelete), m)) {
			full = true
			continue
		}
		d.retire(m, rule, "deleting", why, nil)
	}
	if !d.spec.Deleting || !d.groupEnds() || slices.ContainsFunc(d.order, func(sl *slot) bool { return sl.touched }) {
		return // a slot that this plan changes already, on an order say, goes on the next cache
	}
	a := Action{
		Group: d.g.Name, Rule: "REC-7", What: "group deleted", Why: "its last instance is gone", Conditions: d.common(),
	}
	for _, v := range d.g.Slots {
		if len(a.Writes) == mostSlotsAtOnce {
			a.What, a.NoJournal = "slots of a deleted group removed", true
			d.actions = append(d.actions, a)
			return // the rest on the next cache
		}
		a.Conditions = append(a.Conditions, v.Unchanged())
		a.Writes = append(a.Writes, store.Delete(v.Key))
	}
	if d.g.Spec.Modified != 0 {
		a.Writes = append(a.Writes, store.Delete(d.specKey()))
	}
	if d.g.Spec.StaticModified != 0 {
		a.Writes = append(a.Writes, store.Delete(d.g.Spec.Static))
	}
	if d.g.Status.Present() {
		a.Conditions = append(a.Conditions, d.g.Status.Unchanged())
		a.Writes = append(a.Writes, store.Delete(d.g.Status.Key))
	}
	if d.g.Turn != 0 {
		turn := d.s.Keys.Turn(d.g.Name)
		a.Conditions = append(a.Conditions, store.At(turn, d.g.Turn))
		a.Writes = append(a.Writes, store.Delete(turn))
	}
	d.actions = append(d.actions, a)
}

// mostSlotsAtOnce keeps a transaction below store.MaxOps.
const mostSlotsAtOnce = 50 // each is deleted with a note
