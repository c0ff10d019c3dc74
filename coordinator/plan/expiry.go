package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// expiry replaces instances that have grown too old.
type expiry struct {
	*draft
	forced bool // this plan begins to replace an instance that is past its forced age
}

// age is why an instance is too old. An empty rule means that it is not.
type age struct {
	rule   string
	cause  store.Cause
	forced bool // past forced_age, spot.max_lifetime or on_demand_age
	since  time.Time
}

// ageOf compares an instance's age with the maximum of its group. A spread of up to a tenth, or a
// twelfth of spot.max_lifetime, fixed for each instance, keeps the instances of a group that were
// created together from expiring together (EXP-2).
func (d *expiry) ageOf(m *member) age {
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

func (d *expiry) tooOld(m *member, rule, name string, limit time.Duration, jitter float64, forced bool) age {
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

// expire creates replacements for instances that are too old. The old instance keeps the slot until
// its replacement is healthy; then settle removes it. Forced expiry comes before healing, and
// alternates with it where there is no room for both (heal_next.go); other expiry comes after
// healing, and only while the whole group is healthy (REC-5, EXP-1).
func (d *expiry) expire(forced bool) {
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

// replaceOld requests a replacement if there is room for one. It returns false if the others need
// not be looked at: there is no room for them either, healing comes first, or one replacement at a
// time is all that their age allows.
func (d *expiry) replaceOld(m *member) bool {
	what, most := m.task(store.WorkExpire), d.budget.boundsOf(d.spec.Budget.Expiry).expansion
	switch {
	case m.Record.Protected != "":
		d.block("REC-13", what, store.BlockedByProtection, d.protectedUntil(m))
		return true
	case d.waits(what, d.blocker(m)):
		return true
	case d.waits(what, d.flapping.blocker(m.slot)):
		return true // its replacements have failed too often (FLAP-2)
	case most == 0:
		d.block("EXP-2", what, store.BlockedByNoExpansion, store.BlockedFacts{Cause: m.age.cause})
		return false
	case m.age.forced && d.waits(what, d.healing.nextBlocker()):
		return false
	case d.budget.expansion() >= most:
		d.block("EXP-1", what, store.BlockedByMaxExpansion, store.BlockedFacts{Limit: most})
		return false
	case !m.age.forced && !d.budget.allWell():
		d.block("EXP-1", what, store.BlockedByUnsettled, store.BlockedFacts{Flag: true})
		return false
	case !m.age.forced && d.rollProvesFirst(m):
		d.block("EXP-1", what, store.BlockedByUnprovedTemplate, store.BlockedFacts{Name: d.hash})
		return true
	case d.waits(what, d.budget.additionBlocker()):
		return false
	}
	a := d.step(m, m.phase, m.age.rule, effect(store.EffectReplaced), m.age.cause, m.facts(), nil)
	a.Conditions = append(a.Conditions, d.common()...)
	d.addReplacement(a, m.slot, m, motive{store.PurposeAge, m.age.rule, m.age.cause})
	d.writeSlot(a, m.slot)
	d.forced = d.forced || m.age.forced && !d.damage.untouchable(m)
	return m.age.forced
}

// rollProvesFirst reports whether a roll that has yet to prove its template needs the room of a
// replacement. Expiry would fill it from the last good template; where instances expire faster than
// they are replaced, the roll would never begin.
func (d *expiry) rollProvesFirst(m *member) bool {
	return d.templates.fallback != nil && !d.roll.blamed() && d.spec.Rollout.Strategy == store.StrategyProactive &&
		d.outdated(m)
}

// blocker returns the window or the freeze for which the expiry of a member waits; nil if it does
// not wait. A member past its forced age waits for at most expiry.forced_grace; one past
// spot.max_lifetime does not wait.
func (d *expiry) blocker(m *member) *blocker {
	if m.age.rule == "SPOT-3" {
		return nil
	}
	b := d.windows.blocker(store.PlannedExpiry)
	if b == nil || !m.age.forced {
		return b
	}
	latest := m.age.since.Add(d.spec.Expiry.Grace())
	if !d.now.Before(latest) {
		return nil
	}
	d.wake(latest)
	if b.of.Opens.IsZero() || latest.Before(b.of.Opens) {
		own := *b
		own.of.Opens = latest.UTC()
		b = &own
	}
	return b
}
