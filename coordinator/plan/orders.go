package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// orders carries out operators' requests.
type orders struct {
	*draft
	settled []store.Versioned[store.Request] // those that are carried out by writing the status
}

// carryOut carries out operators' requests, or refuses them; either removes the request in the same
// transaction (REC-16). An order only marks the record: the work follows from the mark, also under
// the next leader.
func (d *orders) carryOut() {
	for _, r := range d.g.Requests {
		switch {
		case r.Record.Kind == store.RequestAdopt && d.find(r.Record.Instance) == nil:
			d.adopt(r)
		case r.Record.Instance == "":
			d.ofGroup(r)
		default:
			d.ofInstance(r)
		}
	}
}

// ofGroup carries out an order for a whole group.
func (d *orders) ofGroup(r store.Versioned[store.Request]) {
	if d.spec == nil && d.g.Spec.Pending {
		return // carried out, or refused, when the provider has answered
	}
	if d.spec == nil {
		d.actions = append(d.actions, refuse(r, "no spec of the group was ever in force"))
		return
	}
	switch r.Record.Kind {
	case store.RequestRetry:
		if !d.agents.retry(r) { // otherwise the rest of it follows in the next plan
			d.retry(r, d.order)
		}
	case store.RequestOverrideStorm:
		if d.storms.storm == nil || d.storms.storm.Ended != "" {
			d.actions = append(d.actions, refuse(r, "there is no storm"))
			return
		}
		d.storms.end(store.Cause{Kind: store.CauseOverridden, By: r.Record.By})
		d.settled = append(d.settled, r)
	case store.RequestPromote:
		d.stages.promote(r)
	case store.RequestCreate:
		d.createOnDemand(r)
	case store.RequestBootstrap:
		d.bootstrap(r)
	case store.RequestDrill:
		d.drills.drill(r, store.DrillMachine, d.inZone(r.Record.Zone))
	default:
		d.actions = append(d.actions, refuse(r, fmt.Sprintf("this version knows no order %q", r.Record.Kind)))
	}
}

// mayRetry reports whether an order to retry the group would do something for its slots or its
// roll.
func (d *orders) mayRetry(slots []*slot) bool {
	return d.roll.rollout != nil && d.roll.rollout.Failed || slices.ContainsFunc(slots, (*slot).mayRetry)
}

// mayRetry reports whether the slot has failures to forget.
func (sl *slot) mayRetry() bool {
	return len(sl.Record.Failures) > 0 || sl.Record.Flapping > 0 || sl.Record.Errored != ""
}

// retry resets flapping and errored slots (FLAP-3). If there are many, each transaction takes some
// of them, and the order stays until the last.
func (d *orders) retry(r store.Versioned[store.Request], slots []*slot) {
	a := Action{
		Group: d.g.Name, Rule: "REC-16", Effect: effect(store.EffectSlotsRestart),
		Why: reason.Short(orderedBy(r.Record.By)), Cause: orderedBy(r.Record.By),
		Facts:          requested(r),
		Counterfactual: counterfactual("REC-16", ""), Conditions: []store.Condition{r.Unchanged()},
	}
	n, more := 0, false
	for _, sl := range slots {
		if !sl.mayRetry() {
			continue
		}
		if sl.touched || n == maxSlotsAtOnce-1 {
			more = true // in the next plan
			continue
		}
		rec := &sl.Record
		rec.Failures, rec.Retry, rec.GiveUp, rec.Flapping = nil, nil, nil, 0
		rec.Errored, rec.ErroredCause = "", store.Cause{}
		sl.retry, sl.giveUp = time.Time{}, time.Time{}
		d.writeSlot(&a, sl)
		n++
	}
	// The last part of an order for the group: the status records that the roll continues, and the
	// same transaction removes the order.
	stopped := r.Record.Instance == "" && d.roll.rollout != nil && d.roll.rollout.Failed
	switch {
	case n == 0 && more:
		return
	case n == 0 && stopped:
		d.roll.rollout.Failed, d.roll.rollout.Retried = false, true
		clearBlame(d.roll.rollout)
		d.tell("ROLL-5", effect(store.EffectRollGoesOn), orderedBy(r.Record.By))
		d.roll.advance()
		d.settled = append(d.settled, r)
		return
	case n == 0:
		d.actions = append(d.actions, refuse(r, "no slot flaps or is given up"))
		return
	case !more && !stopped:
		a.Writes = append(a.Writes, store.Delete(r.Key))
	}
	a.Effect.Count = n
	d.actions = append(d.actions, a)
}

// createOnDemand creates an instance that is neither counted nor healed (REC-2).
func (d *orders) createOnDemand(r store.Versioned[store.Request]) {
	switch {
	case d.spec.Deleting || d.spec.Stopped:
		d.actions = append(d.actions, refuse(r, "the group is stopped, or being deleted"))
		return
	case !d.mayAct():
		return // carried out once creation is allowed again
	case len(d.zones()) == 0:
		d.actions = append(d.actions, refuse(r, "all zones of the group are evacuated"))
		return
	}
	if l := d.budget.overLimit(false); l != nil {
		d.actions = append(d.actions, refuse(r, l.reached()))
		return
	}
	rec := d.newRecord(nil, motive{store.PurposeOrder, "REC-2", orderedBy(r.Record.By)})
	m := d.join(rec)
	a := Action{
		Group: d.g.Name, Instance: rec.ID, Rule: "REC-2", Effect: effect(store.EffectOnDemand), Why: rec.Last.Why,
		Cause: orderedBy(r.Record.By),
		To:    store.Pending, Counterfactual: counterfactual("REC-16", ""),
		Facts:      requested(r),
		Conditions: append(d.common(), store.Absent(m.Key), r.Unchanged()),
		Writes:     []store.Write{store.Put(m.Key, store.Encode(rec)), store.Delete(r.Key)},
	}
	d.templates.madeFrom(&a, &rec)
	d.actions = append(d.actions, a)
}

// ofInstance carries out an order for one instance.
func (d *orders) ofInstance(r store.Versioned[store.Request]) {
	r.Record.Group = d.g.Name // the order need not name the group, and readers of a group look for refusals
	m := d.find(r.Record.Instance)
	switch {
	case m == nil:
		d.actions = append(d.actions, refuse(r, "there is no such instance"))
		return
	case m.touched:
		return // decided on the next cache
	case r.Record.Kind == store.RequestGone:
		d.endByOrder(r, m)
		return
	case m.gone():
		d.actions = append(d.actions, refuse(r, "it is being deleted already"))
		return
	}
	switch r.Record.Kind {
	case store.RequestReplace, store.RequestDelete, store.RequestDrain:
		d.orderToLeave(r, m)
	case store.RequestRestart:
		d.restartOrdered(r, m)
	case store.RequestDrained:
		d.acknowledge(r, m)
	case store.RequestDrill:
		d.drills.drill(r, store.DrillMachine, []*member{m})
	case store.RequestDrillAgent:
		d.drills.drill(r, store.DrillAgent, []*member{m})
	case store.RequestDrillWorkload:
		d.drills.drill(r, store.DrillWorkload, []*member{m})
	case store.RequestProtect:
		d.protect(r, m)
	case store.RequestRetry:
		if m.slot == nil {
			d.actions = append(d.actions, refuse(r, "it is on demand and is never healed"))
			return
		}
		d.retry(r, []*slot{m.slot})
	default:
		d.actions = append(d.actions, refuse(r, fmt.Sprintf("this version knows no order %q", r.Record.Kind)))
	}
}

// orderToLeave records that an instance has to go: after its replacement, or at once.
func (d *orders) orderToLeave(r store.Versioned[store.Request], m *member) {
	order := store.Condemned{
		By: r.Record.By, Why: reason.Short(orderedBy(r.Record.By)), At: d.now.UTC(),
		Now: r.Record.Kind != store.RequestReplace,
	}
	what := named(store.EffectOrdered, map[store.RequestKind]string{
		store.RequestReplace: "replaced",
		store.RequestDelete:  "deleted", store.RequestDrain: "drained",
	}[r.Record.Kind])
	switch c := m.Record.Condemned; {
	case m.phase == store.Draining:
		d.actions = append(d.actions, refuse(r, "it drains already"))
		return
	case c != nil && (c.Now || !order.Now):
		d.actions = append(d.actions, refuse(r, "it was ordered before, by "+c.By))
		return
	case !m.Record.Managed && !order.Now:
		d.actions = append(d.actions, refuse(r, "it is on demand and is never replaced; delete it, and create another"))
		return
	}
	d.changeAsOrdered(r, m, what, func(rec *store.Instance) { rec.Condemned = &order })
}

// changeAsOrdered changes a record as ordered.
func (d *orders) changeAsOrdered(r store.Versioned[store.Request], m *member, what store.Effect,
	change func(*store.Instance),
) {
	why := orderedBy(r.Record.By)
	why.Text = fmt.Sprintf("%.200s", r.Record.Why)
	a := d.step(m, m.phase, "REC-16", what, why, requested(r), change)
	a.Conditions = append(a.Conditions, r.Unchanged())
	a.Writes = append(a.Writes, store.Delete(r.Key))
}

// restartOrdered restarts a machine by order: at once, without a budget.
func (d *orders) restartOrdered(r store.Versioned[store.Request], m *member) {
	switch {
	case d.spec == nil:
		d.actions = append(d.actions, refuse(r,
			"its group is gone; it can only be deleted: leasehold instance delete "+m.ID()))
		return
	case m.byHand():
		d.actions = append(d.actions, refuse(r, "its machine was set up by hand: restart it there"))
		return
	case m.phase != store.Running && m.phase != store.Checking && m.phase != store.Booting && m.phase != store.Starting:
		d.actions = append(d.actions, refuse(r,
			"it is "+string(m.phase)+": only what runs or comes up can be restarted"))
		return
	case !d.mayAct():
		return // carried out once changes are allowed again
	}
	a := d.healing.restart(m, store.RestartMachine, "REC-16", orderedBy(r.Record.By), false, nil)
	a.Facts = append(a.Facts, requested(r)...)
	a.Conditions = append(a.Conditions, r.Unchanged())
	a.Writes = append(a.Writes, store.Delete(r.Key))
}

// acknowledge records that a drain need not be waited for any more.
func (d *orders) acknowledge(r store.Versioned[store.Request], m *member) {
	if m.phase != store.Draining || m.Record.Drain == nil {
		d.actions = append(d.actions, refuse(r, "it does not drain"))
		return
	}
	d.changeAsOrdered(r, m, effect(store.EffectDrained), func(rec *store.Instance) {
		drain := *rec.Drain
		drain.Done = "acknowledged by " + r.Record.By
		rec.Drain = &drain
	})
}

// requested returns the order as a fact.
func requested(r store.Versioned[store.Request]) []store.Fact {
	return []store.Fact{{Kind: store.FactRequest, Name: r.Record.ID}}
}

func refuse(r store.Versioned[store.Request], why string) Action {
	return Action{
		Group: fmt.Sprintf("%.100s", r.Record.Group), Instance: fmt.Sprintf("%.100s", r.Record.Instance),
		Rule: "REC-16", Kind: store.EntryRefusal,
		// An order may contain anything: the journal keeps only a useful amount of it.
		Effect: named(store.EffectOrderRefused, fmt.Sprintf("%.40s", r.Record.Kind)),
		Why:    fmt.Sprintf("%.300s", why),
		Facts: []store.Fact{{
			Kind: store.FactRequest, Name: fmt.Sprintf("%.60s", r.Record.ID), By: fmt.Sprintf("%.100s", r.Record.By),
			Text: r.Record.Kind.Drill(), Zone: fmt.Sprintf("%.100s", r.Record.Zone),
		}},
		Conditions: []store.Condition{r.Unchanged()},
		Writes:     []store.Write{store.Delete(r.Key)},
	}
}
