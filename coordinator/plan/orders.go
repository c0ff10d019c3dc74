package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// orders carries out operators' requests, or refuses them; either removes the request in the same
// transaction (REC-16). Carrying one out marks the record: the work itself follows from the mark,
// the next leader.
func (d *draft) orders() {
	for _, r := range d.g.Requests {
		switch {
		case r.Record.Kind == store.RequestAdopt && d.find(r.Record.Instance) == nil:
			d.adopt(r)
		case r.Record.Instance == "":
			d.orderGroup(r)
		default:
			d.orderInstance(r)
		}
	}
}

// orderGroup carries out an order for a whole group.
func (d *draft) orderGroup(r store.Versioned[store.Request]) {
	if d.spec == nil {
		d.actions = append(d.actions, refuse(r, "no spec of the group was ever in force"))
		return
	}
	switch r.Record.Kind {
	case store.RequestRetry:
		if !d.retryAgents(r) { // else the rest of it follows in the next plan
			d.retry(r, d.order)
		}
	case store.RequestOverrideStorm:
		if d.storm == nil || d.storm.Ended != "" {
			d.actions = append(d.actions, refuse(r, "there is no storm"))
			return
		}
		d.endStorm(store.Cause{Kind: store.CauseOverridden, By: r.Record.By})
		d.settled = append(d.settled, r)
	case store.RequestPromote:
		d.promote(r)
	case store.RequestCreate:
		d.createOnDemand(r)
	case store.RequestBootstrap:
		d.bootstrap(r)
	case store.RequestDrill:
		d.drill(r, store.DrillMachine, d.inZone(r.Record.Zone))
	default:
		d.actions = append(d.actions, refuse(r, fmt.Sprintf("this version knows no order %q", r.Record.Kind)))
	}
}

// mayRetry reports whether an order to retry the group would do something for its slots or its
// roll.
func (d *draft) mayRetry(slots []*slot) bool {
	return d.rollout != nil && d.rollout.Failed || slices.ContainsFunc(slots, (*slot).mayRetry)
}

// mayRetry reports whether the slot has failures to forget.
func (sl *slot) mayRetry() bool {
	return len(sl.Record.Failures) > 0 || sl.Record.Flapping > 0 || sl.Record.Errored != ""
}

// retry has flapping and errored slots start over (FLAP-3). Of many slots one transaction takes a
// part, and the order stays until the last.
func (d *draft) retry(r store.Versioned[store.Request], slots []*slot) {
	a := Action{
		Group: d.g.Name, Rule: "REC-16", What: "slots start over",
		Why: reason.Short(orderedBy(r.Record.By)), Cause: orderedBy(r.Record.By),
		Facts:          requested(r),
		Counterfactual: counterfactual("REC-16", ""), Conditions: []store.Condition{r.Unchanged()},
	}
	n, more := 0, false
	for _, sl := range slots {
		if !sl.mayRetry() {
			continue
		}
		if sl.touched || n == mostSlotsAtOnce-1 {
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
	// The last part of an order for the group: the status says that the roll goes on, and takes the
	// order away with it.
	stopped := r.Record.Instance == "" && d.rollout != nil && d.rollout.Failed
	switch {
	case n == 0 && more:
		return
	case n == 0 && stopped:
		d.rollout.Failed = false
		absolve(d.rollout)
		d.tell("ROLL-5", "roll goes on", orderedBy(r.Record.By))
		d.advance()
		d.settled = append(d.settled, r)
		return
	case n == 0:
		d.actions = append(d.actions, refuse(r, "no slot flaps or is given up"))
		return
	case !more && !stopped:
		a.Writes = append(a.Writes, store.Delete(r.Key))
	}
	a.What = number(n, "slot") + " to start over"
	d.actions = append(d.actions, a)
}

// createOnDemand makes an instance that is neither counted nor healed (REC-2).
func (d *draft) createOnDemand(r store.Versioned[store.Request]) {
	switch {
	case d.spec.Deleting || d.spec.Stopped:
		d.actions = append(d.actions, refuse(r, "the group is stopped, or being deleted"))
		return
	case !d.mayAct():
		return // carried out when things may be made again
	case len(d.zones()) == 0:
		d.actions = append(d.actions, refuse(r, "all zones of the group are evacuated"))
		return
	}
	if l := d.overLimit(false); l != nil {
		d.actions = append(d.actions, refuse(r, l.reached()))
		return
	}
	rec := d.newRecord(nil, motive{store.PurposeOrder, "REC-2", orderedBy(r.Record.By)})
	m := d.join(rec)
	a := Action{
		Group: d.g.Name, Instance: rec.ID, Rule: "REC-2", What: "requested on demand", Why: rec.Last.Why,
		Cause: orderedBy(r.Record.By),
		To:    store.Pending, Counterfactual: counterfactual("REC-16", ""),
		Facts:      requested(r),
		Conditions: append(d.common(), store.Absent(m.Key), r.Unchanged()),
		Writes:     []store.Write{store.Put(m.Key, store.Encode(rec)), store.Delete(r.Key)},
	}
	d.madeFrom(&a, &rec)
	d.actions = append(d.actions, a)
}

// orderInstance carries out an order for one instance.
func (d *draft) orderInstance(r store.Versioned[store.Request]) {
	m := d.find(r.Record.Instance)
	switch {
	case m == nil:
		d.actions = append(d.actions, refuse(r, "there is no such instance"))
		return
	case m.touched:
		return // decided on the next cache
	case r.Record.Kind == store.RequestGone:
		d.vouchedGone(r, m)
		return
	case m.gone():
		d.actions = append(d.actions, refuse(r, "it is being deleted already"))
		return
	}
	switch r.Record.Kind {
	case store.RequestReplace, store.RequestDelete, store.RequestDrain:
		d.condemn(r, m)
	case store.RequestRestart:
		d.restartOrdered(r, m)
	case store.RequestDrained:
		d.acknowledge(r, m)
	case store.RequestDrill:
		d.drill(r, store.DrillMachine, []*member{m})
	case store.RequestDrillAgent:
		d.drill(r, store.DrillAgent, []*member{m})
	case store.RequestDrillWorkload:
		d.drill(r, store.DrillWorkload, []*member{m})
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

// condemn notes that an instance has to go: with a replacement first, or now.
func (d *draft) condemn(r store.Versioned[store.Request], m *member) {
	order := store.Condemned{
		By: r.Record.By, Why: reason.Short(orderedBy(r.Record.By)), At: d.now.UTC(),
		Now: r.Record.Kind != store.RequestReplace,
	}
	what := "ordered to be " + map[store.RequestKind]string{
		store.RequestReplace: "replaced",
		store.RequestDelete:  "deleted", store.RequestDrain: "drained",
	}[r.Record.Kind]
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
	d.obey(r, m, what, func(rec *store.Instance) { rec.Condemned = &order })
}

// obey changes a record as ordered.
func (d *draft) obey(r store.Versioned[store.Request], m *member, what string, change func(*store.Instance)) {
	a := d.step(m, m.phase, "REC-16", what, orderedBy(r.Record.By), requested(r), change)
	a.Conditions = append(a.Conditions, r.Unchanged())
	a.Writes = append(a.Writes, store.Delete(r.Key))
}

// restartOrdered restarts a machine by order: at once, without a budget.
func (d *draft) restartOrdered(r store.Versioned[store.Request], m *member) {
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
		return // carried out when things may be done again
	}
	a := d.restart(m, store.RestartMachine, "REC-16", "restarting its machine", orderedBy(r.Record.By), false, nil)
	a.Facts = append(a.Facts, requested(r)...)
	a.Conditions = append(a.Conditions, r.Unchanged())
	a.Writes = append(a.Writes, store.Delete(r.Key))
}

// acknowledge notes that a drain need not be waited for any more.
func (d *draft) acknowledge(r store.Versioned[store.Request], m *member) {
	if m.phase != store.Draining || m.Record.Drain == nil {
		d.actions = append(d.actions, refuse(r, "it does not drain"))
		return
	}
	d.obey(r, m, "drained", func(rec *store.Instance) {
		drain := *rec.Drain
		drain.Done = "acknowledged by " + r.Record.By
		rec.Drain = &drain
	})
}

// requested is the order as a fact.
func requested(r store.Versioned[store.Request]) []store.Fact {
	return []store.Fact{{Kind: store.FactRequest, Name: r.Record.ID}}
}

func refuse(r store.Versioned[store.Request], why string) Action {
	return Action{
		Group: fmt.Sprintf("%.100s", r.Record.Group), Instance: fmt.Sprintf("%.100s", r.Record.Instance),
		Rule: "REC-16", Kind: store.EntryRefusal,
		// An order may contain anything: the journal takes no more of it than helps.
		What: fmt.Sprintf("order to %.40s refused", r.Record.Kind), Why: fmt.Sprintf("%.300s", why),
		Facts: []store.Fact{{
			Kind: store.FactRequest, Name: fmt.Sprintf("%.60s", r.Record.ID), By: fmt.Sprintf("%.100s", r.Record.By),
		}},
		Conditions: []store.Condition{r.Unchanged()},
		Writes:     []store.Write{store.Delete(r.Key)},
	}
}

// age is why an instance is too old. An empty rule means that it is not.
type age struct {
	rule   string
	cause  store.Cause
	forced bool
	since  time.Time
}

// ageOf compares an instance's age with what its group allows. A share of up to a tenth, which is
// always the same for an instance, keeps a group that was born together from dying together
// (EXP-2).
func (d *draft) ageOf(m *member) age {
	if d.spec == nil || m.Born.IsZero() || m.phase == store.Deleting || m.phase == store.Finished {
		return age{}
	}
	if !m.Record.Managed {
		return d.tooOld(m, "REC-2", "on_demand_age", d.spec.OnDemandAge.D(), 0, true)
	}
	if d.spec.Spot.Enabled || d.divided() && m.Record.Spec.Spot {
		if a := d.tooOld(m, "SPOT-3", "spot.max_lifetime", d.spec.Spot.MaxLifetime.D(), 1.0/12, true); a.rule != "" {
			return a
		}
	}
	settings := &d.s.Shard.Record.Settings
	forced, eligible := ageLimit(d.spec.Expiry.ForcedAge, settings.ForcedAge),
		ageLimit(d.spec.Expiry.EligibleAge, settings.EligibleAge)
	if forced <= 0 && eligible <= 0 {
		return age{} // as in nearly all groups
	}
	if a := d.tooOld(m, "EXP-1", "forced_age", forced, 0.1, true); a.rule != "" {
		return a
	}
	return d.tooOld(m, "EXP-1", "eligible_age", eligible, 0.1, false)
}

func ageLimit(group *store.Duration, shard store.Duration) time.Duration {
	if group != nil {
		return group.D()
	}
	return shard.D()
}

func (d *draft) tooOld(m *member, rule, name string, limit time.Duration, jitter float64, forced bool) age {
	if limit <= 0 {
		return age{}
	}
	own := limit - time.Duration(jitter*share(m.ID(), name)*float64(limit))
	due := d.due(m.Born.Add(own))
	if d.now.Before(due) {
		d.wake(due)
		return age{}
	}
	return age{
		rule: rule, cause: store.Cause{Kind: store.CauseAge, Name: name, For: store.Duration(limit)}, forced: forced,
		since: due,
	}
}

// expire makes replacements for instances that have grown too old. Theirs is the slot until the
// replacement is healthy: then settle lets them go. Forced expiry comes before healing, the other
// after it and only while all is well (REC-5, EXP-1).
func (d *draft) expire(forced bool) {
	var old []*member
	for _, sl := range d.order {
		if len(sl.members) == 0 || sl.touched {
			continue
		}
		m := sl.members[0]
		if m.age.rule != "" && m.age.forced == forced && m.phase == store.Running && !m.touched && !m.unwanted() &&
			len(sl.members) == 1 {
			old = append(old, m)
		}
	}
	slices.SortStableFunc(old, func(a, b *member) int {
		return cmp.Or(cmp.Compare(d.busyRank(a), d.busyRank(b)), a.Born.Compare(b.Born))
	})
	for _, m := range old {
		if !d.replaceOld(m) {
			return
		}
	}
}

// replaceOld requests a replacement if there is room for one; false if there is none for the others
// either.
func (d *draft) replaceOld(m *member) bool {
	what, most := m.task(store.WorkExpire), d.boundsOf(d.spec.Budget.Expiry).expansion
	switch {
	case m.Record.Protected != "":
		d.block("REC-13", what, store.BlockedByProtection, d.protectedUntil(m))
		return true
	case d.tooEarly(m, what):
		return true
	case d.waits(m.slot, what):
		return true // what was made in its place has failed too often (FLAP-2)
	case most == 0:
		d.block("EXP-2", what, store.BlockedByNoExpansion, store.BlockedFacts{Cause: m.age.cause})
		return false
	case d.expansion() >= most:
		d.block("EXP-1", what, store.BlockedByMaxExpansion, store.BlockedFacts{Limit: most})
		return false
	case !m.age.forced && !d.allWell():
		d.block("EXP-1", what, store.BlockedByUnsettled, store.BlockedFacts{Flag: true})
		return false
	case !m.age.forced && d.rollProvesFirst(m):
		d.block("EXP-1", what, store.BlockedByUnprovedTemplate, store.BlockedFacts{Name: d.hash})
		return true
	case !d.mayAdd(what):
		return false
	}
	a := d.step(m, m.phase, m.age.rule, replaced, m.age.cause, m.facts(), nil)
	a.Conditions = append(a.Conditions, d.common()...)
	d.addReplacement(a, m.slot, m, motive{store.PurposeAge, m.age.rule, m.age.cause})
	d.writeSlot(a, m.slot)
	return m.age.forced
}

// rollProvesFirst reports whether the room of a replacement belongs to a roll that has yet to prove
// its template. Expiry would fill it from the last good template, and where instances expire faster
// than they are replaced the roll would never begin.
func (d *draft) rollProvesFirst(m *member) bool {
	return d.fallback != nil && !d.blamed() && d.spec.Rollout.Strategy == store.StrategyProactive && d.outdated(m)
}

// allWell reports whether every slot has its one healthy instance, and nothing else is going on.
func (d *draft) allWell() bool {
	return d.counts.well >= d.spec.Size && d.counts.standing == d.spec.Size && d.counts.leaving == 0
}

// forcedOut removes an instance past its forced age whose replacement was tried and cannot be had,
// within max_unavailable (EXP-2).
func (d *draft) forcedOut(sl *slot, good []*member) {
	old := good[0]
	if len(good) < 2 || !old.age.forced || old.touched || old.Record.Protected != "" || !d.booted(old) ||
		d.unavailable() >= d.boundsOf(d.spec.Budget.Expiry).down {
		return
	}
	tried := good[len(good)-1]
	if tried.phase != store.Creating || tried.Calls.Problem == "" || tried.Calls.Busy || sl.touched {
		return
	}
	if what := old.task(store.WorkExpire); !d.overShared(what, old) && d.mayDelete(what, old) {
		why := old.age.cause
		why.Text = tried.Calls.Problem
		a := d.retire(old, motive{store.PurposeAge, old.age.rule, why}, "deleting", old.facts(), old.proof(d.s.Keys)...)
		d.writeSlot(a, sl)
	}
}

// leftOver goes on with what a group leaves behind of which no spec is in force any more: instances
// on demand, which only the operator orders to go (REC-2, REC-7).
func (d *draft) leftOver() {
	if d.s.Shard.Record.Hold != nil || d.s.stale() {
		return
	}
	d.drains()
	for _, m := range d.members {
		if c := m.Record.Condemned; c != nil && !m.touched && !m.gone() && m.phase != store.Draining {
			d.retire(m, motive{store.PurposeOrder, "REC-16", orderedBy(c.By)}, "deleting", m.facts())
		}
	}
	d.withdrawUnused()
}

// removeOnDemand removes instances on demand that were ordered to go or have grown too old: they
// are never replaced (REC-2).
func (d *draft) removeOnDemand() {
	for _, m := range d.members {
		if m.Record.Managed || m.touched || m.gone() || m.phase == store.Draining {
			continue
		}
		why := motive{store.PurposeAge, m.age.rule, m.age.cause}
		if c := m.Record.Condemned; c != nil {
			why = motive{store.PurposeOrder, "REC-16", orderedBy(c.By)}
		} else if why.rule == "" || m.Record.Protected != "" {
			d.toldDoomed(m)
			continue
		} else if d.tooEarly(m, m.task(store.WorkExpire)) {
			continue
		}
		if !d.mayDelete(m.task(store.WorkRemove), m) {
			return
		}
		d.retire(m, why, "deleting", m.facts())
	}
}

// toldDoomed shows that an instance on demand will end or has to go, and that only its
// operator does anything about it.
func (d *draft) toldDoomed(m *member) {
	if m.doom.rule != "" {
		d.block(m.doom.rule, m.task(store.WorkRemove), store.BlockedByOnDemand, store.BlockedFacts{Cause: m.doom.cause})
	}
}
