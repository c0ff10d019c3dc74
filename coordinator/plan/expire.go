package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// age is why an instance is too old. An empty rule means that it is not.
type age struct {
	rule, why string
	forced    bool
}

// cause is why an instance goes that has grown too old.
func (a age) cause() store.Cause { return store.Cause{Kind: store.CauseAge, Text: a.why} }

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
	if d.spec.Spot.Enabled {
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
	return age{rule: rule, why: fmt.Sprintf("it is older than %s %s", name, limit), forced: forced}
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
	slices.SortStableFunc(old, func(a, b *member) int { return a.Born.Compare(b.Born) })
	for _, m := range old {
		if !d.replaceOld(m) {
			return
		}
	}
}

// replaceOld requests a replacement if there is room for one; false if there is none for the others
// either.
func (d *draft) replaceOld(m *member) bool {
	what := m.task(store.WorkExpire)
	switch {
	case m.Record.Protected != "":
		d.block("REC-13", what, store.BlockedByProtection, store.BlockedFacts{})
		return true
	case d.waits(m.slot, what):
		return true // what was made in its place has failed too often (FLAP-2)
	case d.spec.Budget.MaxExpansion == 0:
		d.block("EXP-2", what, store.BlockedByNoExpansion, store.BlockedFacts{Text: m.age.why})
		return false
	case d.expansion() >= d.spec.Budget.MaxExpansion:
		d.block("EXP-1", what, store.BlockedByMaxExpansion, store.BlockedFacts{Limit: d.spec.Budget.MaxExpansion})
		return false
	case !m.age.forced && !d.allWell():
		d.block("EXP-1", what, store.BlockedByUnsettled, store.BlockedFacts{Flag: true})
		return false
	case !m.age.forced && d.rollProvesFirst(m):
		d.block("EXP-1", what, store.BlockedByUnprovedTemplate, store.BlockedFacts{Name: d.hash})
		return true
	case !d.mayCreate(what):
		return false
	}
	a := d.step(m, m.phase, m.age.rule, replaced, m.age.cause(), m.evidence(), nil)
	a.Conditions = append(a.Conditions, d.common()...)
	d.addReplacement(a, m.slot, m, m.age.rule, m.age.cause())
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
		d.unavailable() >= d.spec.MaxUnavailable(false) {
		return
	}
	tried := good[len(good)-1]
	if tried.phase != store.Creating || tried.Calls.Problem == "" || tried.Calls.Busy || sl.touched {
		return
	}
	if d.mayDelete(old.task(store.WorkExpire), old) {
		a := d.retire(old, old.age.rule, "deleting",
			store.Cause{Kind: store.CauseAge, Text: old.age.why + ", and its replacement was tried: " + tried.Calls.Problem}, old.evidence(), old.proof(d.s.Keys)...)
		d.writeSlot(a, sl)
	}
}

// leftOver goes on with what a group leaves behind of which no spec is in force any more: instances
// on demand, which only the operator orders to go (REC-2, REC-7).
func (d *draft) leftOver() {
	if d.s.Shard.Record.Hold != nil || d.s.Stale != "" {
		return
	}
	d.drains()
	for _, m := range d.members {
		if c := m.Record.Condemned; c != nil && !m.touched && !m.gone() && m.phase != store.Draining {
			d.retire(m, "REC-16", "deleting", orderedBy(c.By), m.evidence())
		}
	}
}

// removeOnDemand removes instances on demand that were ordered to go or have grown too old: they
// are never replaced (REC-2).
func (d *draft) removeOnDemand() {
	for _, m := range d.members {
		if m.Record.Managed || m.touched || m.gone() || m.phase == store.Draining {
			continue
		}
		rule, why := m.age.rule, m.age.cause()
		if c := m.Record.Condemned; c != nil {
			rule, why = "REC-16", orderedBy(c.By)
		} else if rule == "" || m.Record.Protected != "" {
			d.toldDoomed(m)
			continue
		}
		if !d.mayDelete(m.task(store.WorkRemove), m) {
			return
		}
		d.retire(m, rule, "deleting", why, m.evidence())
	}
}

// toldDoomed shows that an instance on demand will end or has to go, and that only its
// operator does anything about it.
func (d *draft) toldDoomed(m *member) {
	if m.doom.rule != "" {
		d.block(m.doom.rule, m.task(store.WorkRemove), store.BlockedByOnDemand, store.BlockedFacts{Text: m.doom.why})
	}
}
