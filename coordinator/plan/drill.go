package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// maxDrilled limits the instances of one drill. Their records share a transaction.
const maxDrilled = 50

// drills begins drills, by order and by schedule.
type drills struct {
	*draft
	due time.Time // see store.Status
}

// drill ends the machines, agents or workloads of instances as if they had failed (DAY-6). The mark
// in their records is the intent; the provider calls, or the gateway's message to the agent, follow
// from it. Because of the mark, nothing is blamed for the consequences.
func (d *drills) drill(r store.Versioned[store.Request], kind store.DrillKind, members []*member) {
	if !d.mayAct() {
		d.actions = append(d.actions, refuse(r, "nothing is done in the group now: it is paused, or the shard is on hold"))
		return
	}
	if why := d.cannot(kind, members); why != "" {
		d.actions = append(d.actions, refuse(r, why))
		return
	}
	mark := store.Drill{Request: r.Record.ID, By: r.Record.By, Kind: kind}
	if a := d.cause(mark, r.Record.Zone, members); a != nil {
		a.Conditions = append(a.Conditions, r.Unchanged())
		a.Writes = append(a.Writes, store.Delete(r.Key))
	}
}

// cannot returns why a drill is refused; "" if it may begin.
func (d *drills) cannot(kind store.DrillKind, members []*member) string {
	if why := d.cannotBear(members); why != "" {
		return why
	}
	return d.cannotFail(kind, members[0])
}

// cause marks the instances that are to fail: all of a zone, if it is named. It returns nil if
// another action of this plan changes one of them.
func (d *drills) cause(mark store.Drill, zone string, members []*member) *Action {
	for _, m := range members {
		if m.touched {
			return nil // decided on the next cache
		}
	}
	for _, m := range members {
		m.drilled = true
		if mark.Kind != store.DrillMachine {
			d.budget.ending = append(d.budget.ending, m)
		}
	}
	first := members[0]
	mark.At = d.now.UTC()
	what := store.Effect{Kind: store.EffectDrillMachines, Count: len(members)}
	if mark.Kind != store.DrillMachine {
		mark.Asked, mark.Epoch = true, first.Alive.Record.Epoch
		what = named(store.EffectDrill, string(mark.Kind))
	}
	facts := []store.Fact{{Kind: store.FactRequest, Name: mark.Request, Zone: zone, Text: string(mark.Kind)}}
	a := d.step(first, first.phase, "DAY-6", what, orderedBy(mark.By), facts,
		func(rec *store.Instance) { rec.Drill = &mark })
	for _, m := range members[1:] {
		rec := m.Record
		rec.Drill = &mark
		rec.Last = d.decision("DAY-6", what, orderedBy(mark.By))
		m.touched = true
		a.Conditions = append(a.Conditions, m.Unchanged())
		a.Writes = append(a.Writes, store.Put(m.Key, store.Encode(rec)))
		a.Facts = append(a.Facts, store.Fact{Kind: store.FactInstance, Name: m.ID()})
	}
	a.Conditions = append(a.Conditions, d.common()...)
	return a
}

// cannotFail returns why an instance's agent cannot cause the failure; "" if it can, or if it is
// not needed.
func (d *drills) cannotFail(kind store.DrillKind, m *member) string {
	switch {
	case kind == store.DrillMachine:
		return ""
	case d.spec.Heal.Policy == store.HealNone:
		return "heal.policy none would leave it down"
	case !m.Alive.Present() || m.Alive.Record.State != store.StreamOpen:
		return "no agent of " + m.ID() + " is connected"
	case kind == store.DrillWorkload && len(m.Record.Spec.Workload.Run) == 0:
		return "the agent of " + m.ID() + " runs no workload"
	default:
		return ""
	}
}

// inZone returns the group's instances in a zone that fill slots.
func (f *fleet) inZone(zone string) (found []*member) {
	for _, m := range f.members {
		if m.Record.Managed && m.Record.Zone == zone && zone != "" && m.phase.Fills() {
			found = append(found, m)
		}
	}
	return found
}

// cannotBear returns why the group could not survive the end of these machines; "" if it can. A
// healthy group of two or more can always lose one; it can lose several only within
// max_unavailable.
func (d *drills) cannotBear(members []*member) string {
	if len(members) == 0 {
		return "the group has no instance there"
	}
	if len(members) > maxDrilled {
		return fmt.Sprintf("%s at once are more than a drill ends (%d)", reason.Number(len(members), "instance"), maxDrilled)
	}
	for _, m := range members {
		switch {
		case !m.Record.Managed:
			return m.ID() + " is on demand, and is never healed"
		case m.byHand():
			return "no provider can end the machine of " + m.ID()
		case m.Record.Protected != "":
			return m.ID() + " is protected"
		case m.phase != store.Running || m.judgment.Verdict != store.Live:
			return m.ID() + " is not healthy and running"
		}
	}
	for _, m := range d.members {
		if m.Record.Drilled(d.now) && m.phase.Fills() {
			return "another drill goes on: " + m.ID()
		}
		if m.Record.Upgrade != nil && !m.gone() {
			return "the agent of " + m.ID() + " is being upgraded"
		}
	}
	down, grace := max(1, d.budget.boundsOf(store.WorkBudget{}).down), d.now.Before(d.s.GraceEnd)
	switch {
	case d.spec.Stopped || d.spec.Deleting || d.spec.Lifecycle == store.LifecycleTask:
		return "the group is stopped, goes, or has tasks"
	case grace:
		return "after a disturbance nothing is judged for a while"
	case d.storms.storm != nil || d.healing.breaker != nil:
		return "there is a storm, or its breaker is open"
	case d.roll.rollout != nil:
		return "a change is being rolled out"
	case !d.budget.allWell():
		return "not all of its instances are healthy"
	case len(members) >= d.spec.Size:
		return fmt.Sprintf("it would leave none of %s", reason.Number(d.spec.Size, "instance"))
	case len(members) > down:
		return fmt.Sprintf("%d would be down, and budget.max_unavailable allows %d", len(members), down)
	case d.budget.shared != nil && !d.budget.shared.bears(len(members)):
		return fmt.Sprintf("budget_group %s does not allow it: another of its groups has instances down",
			d.budget.shared.name)
	}
	return ""
}

// mustHalt reports whether the provider has to end a machine for a drill. It is asked once: a
// leader that finds the call already announced does not repeat it. If the group has any other
// trouble by now, or if a wrong clock has dated the order into the future, the provider is not
// asked at all.
func (d *drills) mustHalt(m *member) bool {
	drill := m.Record.Drill
	return d.spec != nil && m.Record.Drilled(d.now) && !drill.Asked && m.phase == store.Running &&
		d.now.Before(drill.At.Add(store.DrillBegins)) && d.onlyDrilled()
}

// onlyDrilled reports whether the group is healthy apart from instances with a drill.
func (d *drills) onlyDrilled() bool {
	if d.storms.storm != nil || d.healing.breaker != nil || d.roll.rollout != nil || d.now.Before(d.s.GraceEnd) {
		return false
	}
	down := 0
	for _, sl := range d.order {
		drilled := slices.ContainsFunc(sl.members, func(m *member) bool { return m.Record.Drilled(d.now) })
		if drilled && sl.well == 0 {
			down++
		}
	}
	return d.spec.Size-d.counts.well <= down
}
