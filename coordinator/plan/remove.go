package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
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
		if proof := d.provedGone(m); proof != nil {
			d.end(m, *proof)
		}
	}
}

// ending is why the record of an instance may end, and what goes with it.
type ending struct {
	why        string
	evidence   []string
	conditions []store.Condition
	writes     []store.Write
}

// end deletes the record of an instance.
func (d *draft) end(m *member, e ending) *Action {
	m.touched = true
	keys := d.s.Keys
	d.actions = append(d.actions, Action{
		Group: d.g.Name, Instance: m.ID(), Slot: m.Record.Place(), Rule: "SAFE-8", What: "gone", Why: e.why,
		Evidence: e.evidence, From: store.Deleting,
		Conditions: append([]store.Condition{m.Unchanged()}, e.conditions...),
		Writes: append([]store.Write{
			store.Delete(m.Key), store.Delete(keys.Alive(m.ID())), store.Delete(keys.Report(m.ID())),
			store.Delete(keys.Joined(m.ID())),
		}, e.writes...),
	})
	return &d.actions[len(d.actions)-1]
}

// provedGone returns the proof that nothing is left of an instance that is being deleted, or nil.
func (d *draft) provedGone(m *member) *ending {
	switch {
	case !m.Record.Called:
		return &ending{why: "no provider was ever asked for it"}
	case m.byHand():
		return d.endedByHand(m)
	}
	see := m.Sighting
	confirmed := !m.Calls.Deleted.IsZero() && see.Begun.After(m.Calls.Deleted) && !see.Listed
	if !confirmed && !d.vanished(m) {
		return nil
	}
	if see.Begun.Before(m.Calls.AbsentFrom) {
		d.wake(m.Calls.AbsentFrom)
		d.block("SAFE-8", m.task(store.WorkForget), store.BlockedByEarlierCalls, store.BlockedFacts{})
		return nil
	}
	if !confirmed {
		failed := fmt.Sprintf("list begun %s after a removal failed", see.Begun.Sub(m.Calls.RemovalFailed).Round(1e6))
		return &ending{
			why:      "its removal was never confirmed (" + m.Calls.Problem + "), but the provider lists it no more",
			evidence: []string{providerSays(m.Instance), failed},
		}
	}
	return &ending{why: "the provider removed it and lists it no more", evidence: []string{
		providerSays(m.Instance),
		fmt.Sprintf("list begun %s after the removal", see.Begun.Sub(m.Calls.Deleted).Round(1e6)),
	}}
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

// retire takes a member on its way out: to draining if there is something to be waited for, else
// past the point of no return (DRAIN-1, HEAL-14).
func (d *draft) retire(m *member, rule, what string, why store.Cause, evidence []string, also ...store.Condition) *Action {
	var a *Action
	if length, ok := d.drainTime(m); ok {
		if what == "deleting" {
			what = "draining"
		}
		rec := store.Drain{
			Token: d.unique(m.ID()), Rule: rule, Why: reason.Short(why), Cause: reason.Recorded(why),
			Timer: d.timer(length),
			Lost:  m.judgment.Verdict == store.Lost && m.Record.Condemned == nil,
		}
		a = d.step(m, store.Draining, rule, what, why, evidence, func(r *store.Instance) { r.Drain = &rec })
	} else {
		a = d.step(m, store.Deleting, rule, what, why, evidence, nil)
	}
	a.Conditions = append(a.Conditions, d.common()...)
	a.Conditions = append(a.Conditions, also...)
	return a
}

// drainTime is how long a member may drain; false if nothing is to be waited for: it is dead, never
// served, or has no hook. What a notice has doomed goes on serving without a hook too, until its
// replacement does or the notice's time is over (SPOT-2).
func (d *draft) drainTime(m *member) (time.Duration, bool) {
	hook, length := m.Record.Spec.Drain.Hook, m.Record.Spec.Drain.Timeout.D()
	served := m.phase == store.Running || m.phase == store.Checking || m.phase == store.Stopping ||
		m.phase == store.Starting
	if m.dead() || !served {
		return 0, false
	}
	if m.noticed() {
		left := length // else its end is unknown
		if !m.doom.by.IsZero() {
			left = max(0, m.doom.by.Sub(d.now))
			if len(hook) > 0 && length > 0 {
				left = min(length, left)
			}
		}
		return left, left > 0
	}
	return length, len(hook) > 0 && length > 0
}

// relieved ends a drain without a hook once a healthy instance has taken the member's place:
// nothing else is waited for.
func (d *draft) relieved(m *member) bool {
	if len(m.Record.Spec.Drain.Hook) > 0 {
		return false
	}
	heirs := d.others(m, d.proven)
	if len(heirs) == 0 {
		return false
	}
	a := d.drained(m, "SPOT-2", heirs[0].ID()+" is healthy in its place")
	a.Conditions = append(a.Conditions, heirs[0].Unchanged(), heirs[0].Alive.Unchanged(), heirs[0].Report.Unchanged())
	return true
}

// drains goes on with what is draining: it ends by the end of the hook, an acknowledgement, the
// timer, or the machine's death; and an instance that was only lost comes back if its agent does
// (DET-15).
func (d *draft) drains() {
	for _, m := range d.members {
		if m.Record.Phase != store.Draining || m.touched {
			continue
		}
		rec := m.Record.Drain
		if rec == nil {
			rec = &store.Drain{Rule: m.Record.Last.Rule, Why: m.Record.Last.Why, Cause: m.Record.Last.Cause}
		}
		due := d.ends(m.Due, store.TimerDrain, &rec.Timer)
		switch {
		case m.dead():
			d.drained(m, "DET-4", m.judgment.Why)
		case d.comesBack(m, rec):
		case rec.Lost && m.working() && m.Alive.Present() && m.Alive.Record.State == store.StreamOpen:
			d.drainsAfterAll(m)
		case d.relieved(m):
		case rec.Done != "":
			d.drained(m, "DRAIN-1", rec.Done)
		case rec.Token != "" && len(m.Record.Spec.Drain.Hook) > 0 && m.Alive.Present() &&
			m.Report.Record.Drained == rec.Token:
			// without one that says nothing
			a := d.drained(m, "DRAIN-1", "its drain hook has ended")
			a.Conditions = append(a.Conditions, m.Report.Unchanged())
		case !d.now.Before(due):
			d.drained(m, "DRAIN-1", fmt.Sprintf("it had %s to drain", rec.Timer.For))
		default:
			d.wake(due)
			d.block("DRAIN-1", m.task(store.WorkRemove), store.BlockedByDrain,
				store.BlockedFacts{Text: rec.Why, For: rec.Timer.For, Flag: len(m.Record.Spec.Drain.Hook) > 0})
		}
	}
}

func (d *draft) drained(m *member, rule, why string) *Action {
	a := d.step(m, store.Deleting, rule, "deleting", because(why+"; it left because: "+drainedFor(m)), m.evidence(), nil)
	a.Conditions = append(append(a.Conditions, d.common()...), m.proof(d.s.Keys)...)
	return a
}

func drainedFor(m *member) string {
	if m.Record.Drain != nil {
		return m.Record.Drain.Why
	}
	return m.Record.Last.Why
}

// comesBack takes back an instance that was lost, once its agent reports again, unless its slot is
// better off without it.
func (d *draft) comesBack(m *member, rec *store.Drain) bool {
	if !rec.Lost || !m.working() || !m.Alive.Present() || m.Alive.Record.State != store.StreamOpen || m.unwanted() ||
		d.spec == nil || d.spec.Deleting || d.spec.Stopped {
		return false
	}
	if m.slot == nil || m.slot.touched || d.flapsNow(m.slot.Record) || d.obsolete(m) || m.age.rule != "" {
		return false
	}
	to := store.Checking
	if reportIsCurrent(m.Instance) && m.Report.Record.Healthy {
		to = store.Running
	}
	a := d.step(m, to, "DET-15", "came back", because("its agent reports again"), m.evidence(),
		func(r *store.Instance) { r.Drain = nil })
	a.Conditions = append(a.Conditions, m.Alive.Unchanged())
	if m.Report.Present() {
		a.Conditions = append(a.Conditions, m.Report.Unchanged())
	}
	return true
}

// drainsAfterAll has an instance that was lost and came back, and is not wanted any more, drain
// like any other: until now its agent was told nothing of it.
func (d *draft) drainsAfterAll(m *member) {
	if m.slot != nil && m.slot.touched {
		return // decided on the next cache
	}
	a := d.step(m, store.Draining, "DRAIN-1", "drains",
		because("it came back, and its slot is better off without it"),
		m.evidence(), func(r *store.Instance) {
			drain := *r.Drain
			drain.Lost = false
			drain.Timer = d.timer(drain.Timer.For.D()) // it hears of it only now
			r.Drain = &drain
		})
	a.Conditions = append(a.Conditions, m.Alive.Unchanged())
}

// draining lists who is leaving a slot, so that who fills it can say whose place it takes.
func draining(sl *slot) string {
	i := slices.IndexFunc(sl.members, func(m *member) bool { return !m.phase.Fills() || m.dead() })
	if i < 0 {
		return ""
	}
	return sl.members[i].ID()
}

// restFinished lets everybody else in the slot of a finished task go: what a roll or a failure had
// made in its place has nothing left to do (REC-12).
func (d *draft) restFinished() {
	for _, sl := range d.order {
		done := sl.finished()
		if done == nil || len(sl.members) == 1 {
			continue
		}
		for _, m := range sl.members {
			if m != done && !m.gone() && m.phase != store.Draining && !m.dead() {
				d.release(m, done, "REC-12", "withdrawn", because(done.ID()+" has finished the task of its slot"))
			}
		}
	}
}

// removeFinished lets a finished task go that was ordered to. Its slot is filled again, so that the
// task is done once more (REC-16).
func (d *draft) removeFinished() {
	for _, m := range d.members {
		c := m.Record.Condemned
		if m.phase != store.Finished || c == nil || m.touched || !m.Record.Managed || m.slot.touched {
			continue
		}
		if d.mayDelete(m.task(store.WorkRemove), m) {
			a := d.retire(m, "REC-16", "deleting", orderedBy(c.By), nil)
			d.writeSlot(a, m.slot)
		}
	}
}

// finished is the oldest member of the slot whose task is done; nil if there is none.
func (sl *slot) finished() *member {
	for _, m := range sl.members {
		if m.phase == store.Finished && m.Record.Condemned == nil {
			return m
		}
	}
	return nil
}

// buryAll takes up the dead first: they wait for no budget, but use it.
func (d *draft) buryAll() {
	for _, sl := range d.order {
		for _, m := range sl.members {
			if m.dead() && !m.gone() && m.phase != store.Draining && m.phase != store.Finished {
				d.bury(sl, m)
			}
		}
	}
}

// withdrawFailed gives up creations that cannot succeed.
func (d *draft) withdrawFailed() {
	for _, m := range d.members {
		if m.Record.Managed && (m.phase == store.Pending || m.phase == store.Creating) {
			d.giveUp(m)
		}
	}
}

// bury removes a dead member at once, and in the same transaction records who takes its place;
// under the policy restart it is restarted instead, if its machine exists (DET-4).
func (d *draft) bury(sl *slot, m *member) {
	if m.touched || sl.touched || d.made >= mostCreations { // the rest on the next cache
		return
	}
	surplus := d.surplus() // in a surplus it goes all the same (REC-4)
	if d.spared(m) || !surplus && d.leftAlone(m) {
		return
	}
	if !surplus && d.revive(sl, m) {
		return
	}
	flaps := d.fail(sl, m)
	alone := len(d.others(m, usable)) == 0
	needed := !surplus && d.counts.filled < d.spec.Size
	a := d.retire(m, m.judgment.Rule, "deleting", because(m.judgment.Why), m.evidence(), m.proof(d.s.Keys)...)
	if needed && alone {
		sl.Record.Vacated = &store.Vacated{Instance: m.ID(), Dead: true} // until there is a replacement
	}
	switch {
	case flaps && needed:
		a.What += "; " + sl.waiting()
	case alone && needed && len(d.zones()) > 0:
		d.addReplacement(a, sl, m, "DET-4", because("it is dead"))
	}
	d.writeSlot(a, sl)
}

// revive restarts a dead machine in its place, if that is the policy and it may help. Beside
// another one in the slot it only would be one too many.
func (d *draft) revive(sl *slot, m *member) bool {
	if d.spec.Heal.Policy != store.HealRestart || !m.Sighting.Listed || m.unwantedOrdered() ||
		len(d.others(m, (*member).fills)) > 0 {
		return false
	}
	if d.waits(sl, m.task(store.WorkRestart)) {
		return true
	}
	if d.nextRestart(m) == "" {
		return false
	}
	if d.fail(sl, m) {
		d.noteFlapping(sl, m)
		return true
	}
	a := d.restart(m, store.RestartMachine, m.judgment.Rule, "restarting its machine", because(m.judgment.Why), true, nil)
	d.writeSlot(a, sl)
	return true
}

// unwantedOrdered reports whether it has to go whether it works or not.
func (m *member) unwantedOrdered() bool { return m.Record.Condemned != nil || m.doom.rule != "" }

// surplus reports whether more slots have members, dead or not, than are wanted once this plan is
// carried out.
func (d *draft) surplus() bool {
	if len(d.order) <= d.spec.Size {
		return false
	}
	n := 0
	for _, sl := range d.order {
		if sl.damaged != nil || slices.ContainsFunc(sl.members,
			func(m *member) bool { return m.phase.Fills() || m.phase == store.Finished }) {
			n++
		}
	}
	return n > d.spec.Size
}

// inUse is how many slots have members that are not on their way out.
func (d *draft) inUse() int {
	n := 0
	for _, sl := range d.order {
		if sl.occupied() {
			n++
		}
	}
	return n
}

// occupied reports whether the slot has an instance that is not on the way out, dead or not. One
// that only this plan removes counts still.
func (sl *slot) occupied() bool {
	return sl.damaged != nil || sl.used()
}

// used is occupied, going by the records that can be read.
func (sl *slot) used() bool {
	for _, m := range sl.members {
		if m.Record.Phase.Fills() || m.Record.Phase == store.Finished {
			return true
		}
	}
	return false
}

// callProvider lists what is to be asked of the provider. It follows from the phases in the
// records, not from the actions of this plan: an action must have happened before its call.
func (d *draft) callProvider() {
	if d.s.Shard.Record.Hold != nil || d.s.Stale != "" || d.paused() {
		return // SAFE-12, SAFE-3, REC-13: what was decided before waits too
	}
	tried := d.triedRefusals()
	for _, m := range d.members {
		if m.touched || m.Calls.Busy || m.byHand() || d.untouchable(m) {
			continue
		}
		var kind CallKind
		spare, several := m.spareCopy()
		switch {
		case m.phase == store.Pending || m.phase == store.Creating:
			if d.spec == nil || d.g.Unreadable != "" {
				continue
			}
			if d.mustWait(m, tried) {
				continue
			}
			kind = CallCreate
		case m.mustRestart():
			if d.spec == nil {
				continue
			}
			kind = CallRestart
		case m.phase == store.Deleting && m.Record.Called && d.mustRemove(m):
			kind = CallRemove
		case several && m.phase != store.Deleting:
			kind = CallRemoveCopy
		default:
			continue
		}
		if d.now.Before(m.Calls.RetryAt) {
			d.wake(m.Calls.RetryAt)
			continue
		}
		d.calls = append(d.calls, Call{
			Kind: kind, Instance: m.ID(), Group: d.g.Name, Provider: m.Record.Spec.Provider, Rank: rank(kind, m),
			Record: m.Modified, Revision: d.s.Revision, Copy: spare,
			Conditions: append(d.common(), m.Unchanged()),
		})
	}
}

// spareCopy returns a second machine that one of our own calls made for the instance.
func (m *member) spareCopy() (c Copy, there bool) {
	i := slices.IndexFunc(m.Sighting.Copies, func(c Copy) bool { return c.Spare })
	if i < 0 {
		return Copy{}, false
	}
	return m.Sighting.Copies[i], true
}

// triedRefusals are the refusals of which a creation under way tries whether they are over.
func (d *draft) triedRefusals() map[Refused]bool {
	if len(d.s.Refusals) == 0 {
		return nil
	}
	tried := map[Refused]bool{}
	for _, m := range d.members {
		if of, _, refused := d.refusal(m); refused && m.Calls.Busy {
			tried[of] = true
		}
	}
	return tried
}

// mustWait reports whether a creation waits for the end of a refusal (PROV-5). One of them at a time
// tries whether it is over; what comes of that has the others planned again.
func (d *draft) mustWait(m *member, tried map[Refused]bool) bool {
	of, r, refused := d.refusal(m)
	switch {
	case !refused:
		return false
	case tried[of]:
		return true
	case d.now.Before(r.Until):
		d.wake(r.Until)
		return true
	}
	tried[of] = true
	return false
}

func (d *draft) paused() bool { return d.spec != nil && d.spec.Paused }

// halted says in words what a pause keeps from being asked of the provider, though it was decided
// before; "" if there is nothing.
func (d *draft) halted() string {
	var creations, removals, restarts int
	for _, m := range d.members {
		switch {
		case m.Calls.Busy || m.byHand():
		case m.phase == store.Pending || m.phase == store.Creating:
			creations++
		case m.phase == store.Deleting && m.Record.Called && d.mustRemove(m):
			removals++
		case m.mustRestart():
			restarts++
		}
	}
	var parts []string
	for _, of := range []struct {
		n    int
		what string
	}{{creations, "creation"}, {removals, "removal"}, {restarts, "restart"}} {
		if of.n > 0 {
			parts = append(parts, number(of.n, of.what))
		}
	}
	return strings.Join(parts, ", ")
}

// rank puts the healing of what has failed first, then other replacements, then growth, and all
// before removals (REC-9).
func rank(kind CallKind, m *member) int {
	switch {
	case kind == CallRemove || kind == CallRemoveCopy:
		return 3
	case m.Record.Last.Rule == "ROLL-1" || m.Record.Last.Rule == "EXP-1":
		return 1
	case kind == CallRestart || m.Record.Replaces != "":
		return 0
	default:
		return 2
	}
}

// mustRemove reports whether the machine has not been removed yet, or was seen again after it was.
func (d *draft) mustRemove(m *member) bool {
	if m.Calls.Deleted.IsZero() {
		return true
	}
	return m.Sighting.Listed && m.Sighting.Begun.After(m.Calls.Deleted) && !m.Sighting.Begun.Before(m.Calls.AbsentFrom)
}
