package sim_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// budgets counts what is under way once an action has happened, again and from the records, and
// compares it with what is allowed.
func (in *inquiry) budgets() {
	if !in.force.there {
		for _, c := range in.changes {
			if c.begins() && c.next.Managed {
				in.tr.fail("%s is made for a group of which no spec was ever in force", c.next.ID)
			}
		}
		return
	}
	in.limits()
	if in.exempt() {
		return
	}
	members := in.tr.members(in.a.Group)
	in.expansion(members)
	in.creating(members)
	in.deleting(members)
	in.unavailable(members)
}

// limits: nothing is made beyond limit_instances, in whatever phase the others are (CAP-1).
func (in *inquiry) limits() {
	made := 0
	for _, c := range in.changes {
		if c.begins() && c.next.Phase == store.Pending {
			made++
		}
	}
	all, most := len(in.tr.w.Instances())+made, in.tr.w.Shard().Settings.LimitInstances
	if made > 0 && most > 0 && all > most {
		in.tr.fail("there are %d instances once %s %s: %s, and limit_instances is %d", all, in.a.Group, in.a.Rule,
			in.a.What(), most)
	}
}

// canaries: a roll goes to no more slots than its canaries before these are promoted (ROLL-5). Only
// a proactive one has canaries; the strategy may have changed since it began.
func (in *inquiry) canaries() {
	r := sim.Read[store.Status](in.tr.w, in.tr.w.Keys().Status(in.a.Group)).Record.Rollout
	if r == nil || r.Canary == 0 || r.Promoted != "" || !rollsSlot(in.a) ||
		in.force.spec.Rollout.Strategy != store.StrategyProactive {
		return
	}
	if r.Template != in.force.hash {
		return // an edit: this plan begins another roll, and the status still has the canaries of the one before
	}
	reached := map[int]bool{}
	for _, n := range r.Canaries {
		if sim.Read[store.Slot](in.tr.w, in.tr.w.Keys().Slot(in.a.Group, n)).Present() {
			reached[n] = true // the status still names slots that have been removed since
		}
	}
	has := map[int]bool{} // by healing, where the last good template does not help: their originals go for the roll
	for _, m := range in.tr.members(in.a.Group) {
		has[m.Slot] = has[m.Slot] || m.Template == r.Template
	}
	for i := range in.p.Actions {
		if a := &in.p.Actions[i]; a.Group == in.a.Group && rollsSlot(a) && !has[*a.Slot] {
			reached[*a.Slot] = true
		}
	}
	if len(reached) > r.Canary {
		in.tr.fail("the roll of %s goes to %d slots, and %d canaries are not promoted yet: %s %s", in.a.Group, len(reached),
			r.Canary, in.a.Rule, in.a.What())
	}
}

// rollsSlot reports whether an action brings a roll to a slot. The end of a restart does not: a
// roll before this one may have begun it.
func rollsSlot(a *plan.Action) bool {
	return a.Slot != nil && (a.Rule == "ROLL-1" || a.Rule == "ROLL-2") && a.To != store.Starting && a.To != store.Checking
}

// exempt: the dead wait for no budget, nor do those that a notice has doomed; and an operator's
// order to go now is obeyed now.
func (in *inquiry) exempt() bool {
	for _, c := range in.changes {
		rec := c.old.Record
		switch {
		case !c.old.Present():
			continue
		case in.dead(rec.ID), rec.Doomed != nil && rec.Doomed.Rule == "SPOT-2":
			return true
		case rec.Condemned != nil && rec.Condemned.Now:
			return true
		}
	}
	for _, m := range in.begun() {
		if in.died(m.Slot) {
			return true
		}
	}
	for _, op := range in.a.Writes {
		kind, _, _ := in.tr.w.Keys().Split(op.Key)
		if kind == store.KindRequests {
			return true // an order, carried out in this very transaction
		}
	}
	return false
}

// died reports whether a slot is empty since its instance died.
func (in *inquiry) died(number int) bool {
	g := in.snapshotOf(in.a.Group)
	return g != nil && slices.ContainsFunc(g.Slots, func(sl store.Versioned[store.Slot]) bool {
		return sl.Record.Number == number && sl.Record.Vacated != nil && sl.Record.Vacated.Dead
	})
}

// snapshotOf returns a group as the plan saw it; nil if the plan did not look at it.
func (in *inquiry) snapshotOf(group string) *plan.Group {
	if in.s == nil {
		return nil
	}
	for i := range in.s.Groups {
		if in.s.Groups[i].Name == group {
			return &in.s.Groups[i]
		}
	}
	return nil
}

// after is a member as it is once the action has happened.
func (in *inquiry) after(m store.Instance) store.Instance {
	for _, c := range in.changes {
		if c.old.Present() && c.old.Record.ID == m.ID && !c.gone {
			return c.next
		}
	}
	return m
}

// begun are the managed instances that the action makes.
func (in *inquiry) begun() (out []store.Instance) {
	for _, c := range in.changes {
		if c.begins() && c.next.Managed && c.next.Phase == store.Pending {
			out = append(out, c.next)
		}
	}
	return out
}

// expansion: never more machines than size and max_expansion allow together, those that are being
// deleted included (REC-18); more, if size was lowered meanwhile, only as long as it does not grow.
func (in *inquiry) expansion(members []store.Instance) {
	begun := in.begun()
	if len(begun) == 0 {
		return
	}
	before, after := 0, len(begun)
	for _, m := range members {
		if in.finishes(m) {
			continue
		}
		if in.countsForSize(m) {
			before++
		}
		if in.countsForSize(in.after(m)) {
			after++
		}
	}
	expansion := in.force.spec.MaxExpansionFor(in.ofItsWork())
	if most := in.force.spec.Size + expansion; after > max(before, most) {
		in.tr.fail("%d instances stand in %s, at most %d may (size %d, max_expansion %d): %s %s", after, in.a.Group,
			most, in.force.spec.Size, expansion, in.a.Rule, in.a.What())
	}
}

// ofItsWork is what the action's kind of work may use of the budgets (REC-18).
func (in *inquiry) ofItsWork() store.WorkBudget {
	switch in.a.Rule {
	case "HEAL-1", "HEAL-2":
		return in.force.spec.Budget.Heal
	case "ROLL-1", "ROLL-2":
		return in.force.spec.Budget.Roll
	case "EXP-1":
		return in.force.spec.Budget.Expiry
	default:
		return store.WorkBudget{}
	}
}

func (in *inquiry) countsForSize(m store.Instance) bool {
	noticed := (m.Phase == store.Draining || m.Phase == store.Deleting) && m.Doomed != nil && m.Doomed.Rule == "SPOT-2"
	gone := m.Phase == store.Deleting && (m.Dead || !m.Called)
	return m.Managed && !gone && !in.dead(m.ID) && !noticed
}

// finishes reports whether a member is there only until its workload is idle. What is not planned
// does not wait for the room that it takes (BUSY-1).
func (in *inquiry) finishes(m store.Instance) bool {
	switch in.a.Rule {
	case "ROLL-1", "ROLL-2", "EXP-1", "SPOT-3", "SPOT-4", "REC-2", "REC-17":
		return false
	case "HEAL-9":
		if !in.hadToGo() {
			return false
		}
	}
	return m.Phase == store.Draining && m.Drain != nil && m.Drain.Busy != nil
}

// hadToGo reports whether the action's instance had to go in any case: by an order, a notice or an
// evacuation.
func (in *inquiry) hadToGo() bool {
	old, known := in.tr.records[in.a.Instance]
	_, evacuated := in.tr.w.Shard().Evacuated[old.Zone]
	return known && (old.Condemned != nil || old.Doomed != nil || evacuated)
}

// creating: max_creating bounds who comes up. One that failed to come up does not count, nor does
// a restart that was carried out only after the plan: that takes no turn, and would as well have
// happened just after the action (HEAL-7).
func (in *inquiry) creating(members []store.Instance) {
	n, most := len(in.begun()), in.force.spec.Budget.MaxCreating
	if n == 0 || most == 0 {
		return
	}
	for _, m := range members {
		switch m.Phase {
		case store.Pending, store.Creating, store.Booting, store.Starting:
			if m.Managed && !in.p.Judgments.Of(m.ID).Verdict.Failed() && !in.wasStopping(m) {
				n++
			}
		default:
		}
	}
	if n > most {
		in.tr.fail("%d come up in %s, max_creating is %d: %s %s", n, in.a.Group, most, in.a.Rule, in.a.What())
	}
}

// wasStopping reports whether a restart of an instance was yet to be carried out when the action
// was planned.
func (in *inquiry) wasStopping(m store.Instance) bool {
	g := in.snapshotOf(m.Group)
	return g != nil && slices.ContainsFunc(g.Instances, func(p plan.Instance) bool {
		return p.Record.ID == m.ID && p.Record.Phase == store.Stopping
	})
}

// deleting: max_deleting bounds who goes down.
func (in *inquiry) deleting(members []store.Instance) {
	most, more := in.force.spec.Budget.MaxDeleting, false
	for _, c := range in.changes {
		more = more || c.leaves() && c.old.Record.Managed
	}
	if !more || most == 0 {
		return
	}
	n := 0
	for _, m := range members {
		if m.Managed && going(in.after(m).Phase) && !in.finishes(m) {
			n++
		}
	}
	if n > most {
		in.tr.fail("%d go down in %s, max_deleting is %d: %s %s", n, in.a.Group, most, in.a.Rule, in.a.What())
	}
}

// unavailable: no booted instance is taken down when that leaves more slots without one than
// max_unavailable allows, unless the slot is not wanted any more.
func (in *inquiry) unavailable(members []store.Instance) {
	spec := in.force.spec
	if spec.Deleting || spec.Stopped {
		return
	}
	for _, c := range in.changes {
		rec := c.old.Record
		if !c.leaves() || !rec.Managed || rec.Phase == store.Finished || !in.up(rec) || !in.started(rec) ||
			in.filledSlots() > spec.Size {
			continue
		}
		up, covered := map[int]bool{}, false
		for _, m := range members {
			if in.up(in.after(m)) {
				up[m.Slot] = true
				covered = covered || m.Slot == rec.Slot
			}
		}
		most := spec.MaxUnavailableFor(in.ofItsWork(), c.next.Phase == store.Stopping)
		if n := spec.Size - len(up); !covered && n > most {
			in.tr.fail("%s is taken down, and %d of %d slots of %s have no booted instance then, max_unavailable is %d: "+
				"%s %s", rec.ID, n, spec.Size, in.a.Group, most, in.a.Rule, in.a.What())
		}
		if !covered {
			in.shared(max(0, spec.Size-len(up)))
		}
	}
}

// shared: nothing is taken down that leaves more slots without a booted instance in all groups with
// the same budget_group than the shard's setting allows (REC-18). What was asked of the others
// after the plan does not count: it takes nothing down, and might as well have come just after the
// action.
func (in *inquiry) shared(down int) {
	own := in.force.spec.BudgetGroup
	if own == "" || in.s == nil {
		return
	}
	where := fmt.Sprintf("%d in %s", down, in.a.Group)
	for _, name := range in.tr.groups() {
		spec, there := in.asPlanned(name)
		if name == in.a.Group || !there || spec.BudgetGroup != own || spec.Stopped || spec.Deleting {
			continue
		}
		up := map[int]bool{}
		for _, m := range in.tr.members(name) {
			if in.up(m) {
				up[m.Slot] = true
			}
		}
		if n := max(0, spec.Size-len(up)); n > 0 {
			down, where = down+n, where+fmt.Sprintf(", %d in %s", n, name)
		}
	}
	if most := in.tr.w.Shard().Settings.BudgetOf(own); down > most {
		in.tr.fail("budget_group %s allows %d down, and there are %s: %s %s", own, most, where, in.a.Rule, in.a.What())
	}
}

// asPlanned returns what was wanted of a group when the action was planned.
func (in *inquiry) asPlanned(group string) (spec store.Group, there bool) {
	if f := in.tr.inForce(group); f.key <= in.s.Revision {
		return f.spec, f.there
	}
	switch g := in.snapshotOf(group); { // it was edited since
	case g == nil:
		return store.Group{}, false
	case g.Spec.InForce():
		return g.Spec.Group, true
	case g.Status.Record.Accepted != nil:
		return *g.Status.Record.Accepted, true
	default:
		return store.Group{}, false
	}
}

// up reports whether a member has fully booted, whatever its checks say (HEAL-5), or that nothing
// more is expected of it. One whose workload has ended, by the report that the plan was made on, is
// down (REC-18).
func (in *inquiry) up(m store.Instance) bool {
	return m.Managed && (m.Phase == store.Running && !in.dead(m.ID) && !in.ended(m.ID) || m.Phase == store.Finished)
}

func (in *inquiry) ended(id string) bool {
	if in.s == nil {
		return false
	}
	for _, g := range in.s.Groups {
		for i := range g.Instances {
			if m := &g.Instances[i]; m.Record.ID == id {
				r := &m.Report.Record
				return m.Alive.Present() && r.BootID == m.Alive.Record.BootID && r.Workload != nil &&
					(m.Record.Spec.Lifecycle != store.LifecycleTask || r.Workload.Code != 0)
			}
		}
	}
	return false
}

// unled is more than the time without a leader that a leader takes off an instance's time in its
// phase.
const unled = 3 * time.Minute

// started reports whether it has held out for startup_duration, however wrong clocks were (ROLL-3):
// before that it does not count.
func (in *inquiry) started(m store.Instance) bool {
	startup := in.force.spec.Rollout.StartupDuration.D()
	return startup == 0 || in.tr.w.Now().Sub(m.Since) >= startup+in.tr.wrong+unled
}
