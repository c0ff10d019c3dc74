package plan

import (
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// updateFailing brings what is wanted to those that need it most and lose nothing by it: an
// instance that is not healthy and needs a live update alone, a replacement under way as well as
// the one it replaces. It may be just what makes them healthy, for example a check that was wrong
// and is corrected. So they wait for no turn and no budget; the order of a roll is for those that
// work (ROLL-2, HEAL-8).
func (d *draft) updateFailing() {
	if d.rollout == nil || d.blamed() {
		return
	}
	for _, sl := range d.order {
		for _, m := range sl.members {
			if !m.touched && d.updatedFirst(m) {
				_, why := d.change(m)
				d.updateNow(m, why)
			}
		}
	}
}

// updatedFirst reports whether a member gets what is new before its turn: it is not protected, and
// its agent can be told.
func (d *draft) updatedFirst(m *member) bool {
	if !d.outdated(m) || m.Record.Protected != "" || m.unwantedOrdered() || !m.Alive.Present() ||
		m.Alive.Record.State != store.StreamOpen {
		return false
	}
	switch {
	case m.phase == store.Checking && d.fallback != nil && m.Record.Template == d.fallback.hash:
		return false // it was made from what is known to work (ROLL-9)
	case m.phase == store.Checking:
	case m.phase != store.Running || !m.failing() || m.dead() || m.missed():
		return false
	}
	if !m.failing() && d.spec.Rollout.Strategy != store.StrategyProactive && len(m.slot.members) == 1 {
		return false // it is not replaced for another reason (ROLL-1)
	}
	action, _ := d.change(m)
	return action == store.ActionLiveUpdate
}

// updateLive makes the agent of a member take up what is new. That takes nothing down, yet goes
// step by step: it may be wrong.
func (d *draft) updateLive(m *member, why store.Cause) bool {
	if most := max(1, d.spec.Budget.MaxExpansion+d.spec.MaxUnavailable(false)); d.roll.updating >= most {
		d.block("ROLL-2", m.task(store.WorkUpdate), store.BlockedByConfirmations,
			store.BlockedFacts{Count: d.roll.updating})
		return false
	}
	if m.healthy() && d.unwell() > d.spec.MaxUnavailable(false) {
		d.blockUnwell(m)
		return false
	}
	d.updateNow(m, why)
	return true
}

// updateNow has it do so at once.
func (d *draft) updateNow(m *member, why store.Cause) {
	a := d.step(m, m.phase, "ROLL-2", "updated live", why, m.evidence(), d.renewed(m))
	a.Conditions = append(a.Conditions, d.common()...)
	d.roll.updating++
}

// renewed puts what is wanted now into a record. A configuration that comes back before the agent
// has reported the one in between gets a hash of its own: the last report still names it from
// before, and would be taken for the confirmation.
func (d *draft) renewed(m *member) func(*store.Instance) {
	return func(r *store.Instance) {
		was := r.Config
		r.Spec, r.Template, r.Relaunch = d.spec.InstanceSpec(), d.hash, d.spec.Relaunch.Number
		r.Config = r.Spec.ConfigHash()
		if r.Config != was && r.Config == m.Report.Record.Config {
			r.Config = fmt.Sprintf("%s-%d", r.Config, m.Modified)
		}
	}
}
