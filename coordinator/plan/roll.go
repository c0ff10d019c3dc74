package plan

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// templateUnknown stands for the unknown template of an adopted machine.
const templateUnknown = "unknown"

// roll brings the instances to a changed template.
type roll struct {
	*draft
	rollout *store.Rollout // as it will be recorded
	count   rollCount
}

// updating reports whether the agent has yet to apply what it was sent.
func (m *member) updating() bool {
	return m.Record.Config != "" && m.Alive.Present() && m.Report.Record.Config != m.Record.Config
}

// change returns the least action that brings a member up to date, and why: ROLL-2.
func (v *view) change(m *member) (action string, why store.Cause) {
	var parts []string
	action = store.ActionLiveUpdate
	more := func(a, part string) {
		parts = append(parts, part)
		if actionRank(a) > actionRank(action) {
			action = a
		}
	}
	was := &m.Record.Spec
	switch {
	case m.Record.Template == templateUnknown:
		more(store.ActionRecreate, "what it was made from is unknown")
	case m.Record.Template != v.hash:
		if was.Provider != v.spec.Provider || !reflect.DeepEqual(was.Template, v.spec.Template) {
			more(store.ActionRecreate, "template")
		}
		if was.Slots != v.spec.Slots {
			more(store.ActionRecreate, "slots.name")
		}
		if !slices.Equal(was.Workload.Run, v.spec.Workload.Run) {
			more(store.ActionRestart, "workload.run")
		}
		if !maps.Equal(was.Vars, v.spec.Vars) {
			a := store.ActionLiveUpdate
			if runUses(v.spec.Workload.Run, was.Vars, v.spec.Vars) {
				a = store.ActionRestart // a running program cannot get new arguments
			}
			more(a, "vars")
		}
		if !maps.Equal(was.Secrets, v.spec.Secrets) {
			more(store.ActionRestart, "secrets") // a running program cannot get a new environment
		}
		if wanted := v.spec.InstanceSpec(); store.FilesNeedRestart(was, &wanted) {
			more(store.ActionRestart, "files")
		} else if len(was.Files)+len(v.spec.Files) > 0 && !reflect.DeepEqual(was.Files, v.spec.Files) {
			more(store.ActionLiveUpdate, "files")
		}
		if len(was.Checks)+len(v.spec.Checks) > 0 && !reflect.DeepEqual(was.Checks, v.spec.Checks) {
			more(store.ActionLiveUpdate, "checks")
		}
		if !reflect.DeepEqual(was.Busy, v.spec.Busy.BusyProbe) {
			more(store.ActionLiveUpdate, "busy")
		}
	}
	if m.Record.Relaunch < v.spec.Relaunch.Number {
		more(v.spec.Relaunch.Action, fmt.Sprintf("relaunch %d", v.spec.Relaunch.Number))
	}
	if actionRank(v.spec.Rollout.MinimalAction) > actionRank(action) {
		action = v.spec.Rollout.MinimalAction
	}
	return action, store.Cause{Kind: store.CauseOutdated, Text: strings.Join(parts, ", ")}
}

func actionRank(a string) int {
	return slices.Index([]string{store.ActionLiveUpdate, store.ActionRestart, store.ActionRecreate}, a)
}

// runUses reports whether a command names a variable that has changed.
func runUses(run []string, was, now map[string]string) bool {
	for _, vars := range []map[string]string{was, now} {
		for name := range vars {
			before, had := was[name]
			after, has := now[name]
			if had == has && before == after {
				continue
			}
			if slices.ContainsFunc(run, func(arg string) bool { return strings.Contains(arg, "${"+name+"}") }) {
				return true
			}
		}
	}
	return false
}

// rollOut rolls out a change, under the budgets that healing has left: ROLL-1, HEAL-8.
func (d *roll) rollOut() {
	if d.rollout == nil {
		return
	}
	if d.blamed() {
		d.block("FLAP-5", task{work: store.WorkRoll}, store.BlockedByBlamedTemplate,
			d.templates.meanwhile(store.BlockedFacts{Cause: reason.Known(d.rollout.BlamedCause, d.rollout.Blamed)}))
		return
	}
	if d.healsFirst() {
		return // the rest on the next cache
	}
	if d.healing.waiting != "" {
		d.block("HEAL-8", task{work: store.WorkRoll}, store.BlockedByHealing, store.BlockedFacts{Other: d.healing.waiting})
		return
	}
	list := d.inWindow(d.stages.staged(d.outdatedInTurn()))
	if len(list) > 0 && d.analysis.holdUp() {
		return
	}
	for _, m := range list {
		if !d.update(m) {
			return
		}
		d.stages.becomesCanary(m)
	}
}

// blamed reports whether failures are blamed on the template that is being rolled out (FLAP-5).
func (d *roll) blamed() bool { return d.rollout != nil && d.rollout.Blamed != "" }

// rolls reports whether a member exists only for a roll or a rebalance and is not healthy yet: the
// older member of its slot works and is only outdated, or in a zone that has too many.
func (d *roll) rolls(m, old *member) bool {
	return older(old, m) && m.phase.Fills() && m.phase != store.Running && !m.unwanted() && m.Record.Protected == "" &&
		(!d.outdated(m) && d.outdated(old) || m.Record.Rebalances && old.rebalancedBy() == m) &&
		old.healthy() && !old.unwanted() && old.age.rule == ""
}

// makeRoom withdraws the youngest instance that a roll has created and that is not healthy yet, for
// a failed member that needs its room: the roll's slot has another member that serves, the failed
// one has none (HEAL-8). It returns the leaving member, which may be one that has been draining or
// being deleted since an earlier plan.
func (d *roll) makeRoom(m *member, takesRoom func(*member) bool) string {
	var young, old *member
	for _, sl := range d.order {
		for _, o := range sl.members {
			if !takesRoom(o) {
				continue
			}
			if o.leavesForRoom() {
				return o.ID()
			}
			if first := sl.members[0]; !o.touched && !first.touched && d.rolls(o, first) &&
				(young == nil || older(young, o)) {
				young, old = o, first
			}
		}
	}
	if young == nil || d.waits(young.task(store.WorkRemove), d.budget.givingWayBlocker(young)) ||
		d.waitsFirst(m, young) {
		return ""
	}
	d.settling.release(young, old, motive{
		store.PurposeRoom, "HEAL-8", store.Cause{Kind: store.CauseGivesWay, Other: m.ID(), Name: old.ID()},
	}, store.EffectWithdrawn)
	return young.ID()
}

// leavesForRoom reports whether the member is already leaving to make room for a failed one.
func (m *member) leavesForRoom() bool {
	leaves := m.Record.Phase == store.Draining || m.Record.Phase == store.Deleting
	return leaves && m.Record.LeavesBecause() == store.PurposeRoom
}

// waitsFirst counts the failure of a member before a roll's instance makes room for it. The member
// may recover before there is room, and fail again: if each time costs the roll an instance, the
// member's slot has to flap like any other, so that the roll continues (FLAP-2). It returns true if
// the slot flaps already.
func (d *roll) waitsFirst(m, young *member) bool {
	if m.Record.Counted || m.unwantedOrdered() || d.neverHealed(m) {
		return false
	}
	if m.slot.touched {
		return true // decided on the next cache
	}
	if d.flapping.fail(m.slot, m) {
		d.flapping.note(m.slot, m)
		return true
	}
	a := d.step(m, m.phase, "FLAP-1", store.Effect{Kind: store.EffectAwaitsRoom, Instance: young.ID()},
		m.judgment.Cause, m.facts(), func(r *store.Instance) { r.Counted = true })
	a.Conditions = append(a.Conditions, m.proof(d.s.Keys)...)
	d.writeSlot(a, m.slot)
	return false
}

// healsFirst reports whether this plan has taken a step for a slot without a working instance: the
// next step belongs to that slot too, and the roll takes no room before (HEAL-8).
func (d *roll) healsFirst() bool {
	for _, sl := range d.order {
		if sl.well > 0 {
			continue
		}
		for _, m := range sl.members {
			if (m.failing() || m.dead()) && (m.touched || sl.touched) {
				return true
			}
		}
	}
	return false
}

// outdatedInTurn lists the members that may be updated: alone in their slot and working. Slots in
// which the new template has failed least come first, so that a bad template shows in several
// slots, and no slot waits behind one that flaps (FLAP-5).
func (d *roll) outdatedInTurn() []*member {
	var list []*member
	failed := map[*member]int{}
	for _, sl := range d.order {
		if len(sl.members) != 1 || sl.touched {
			continue
		}
		m := sl.members[0]
		if m.touched || !d.outdated(m) || !d.neverHealed(m) &&
			(m.phase != store.Running && m.phase != store.Checking || m.unwanted()) {
			continue
		}
		if m.phase == store.Checking && !d.templates.obsolete(m) {
			continue // it was made from the last good template, and has time to become healthy (ROLL-9)
		}
		if d.spec.Rollout.Strategy != store.StrategyProactive && m.Record.Relaunch == d.spec.Relaunch.Number {
			continue // it waits for another reason; a relaunch does not, since an operator ordered it
		}
		list = append(list, m)
		for _, f := range sl.Record.Failures {
			if f.Template == d.hash {
				failed[m]++
			}
		}
	}
	slices.SortStableFunc(list, func(a, b *member) int {
		if x, y := d.neverHealed(a), d.neverHealed(b); x != y {
			return map[bool]int{true: -1, false: 1}[x]
		}
		return cmp.Or(cmp.Compare(d.busyRank(a), d.busyRank(b)), cmp.Compare(failed[a], failed[b]))
	})
	return list
}

// neverHealed reports whether a failed member is left as it is by heal.policy or the breaker. Apart
// from an order, only a new template may help, so it comes first.
func (d *roll) neverHealed(m *member) bool {
	unhealed := d.spec.Heal.Policy == store.HealNone || d.healing.breaker != nil && m.failsChecks()
	return unhealed && m.failing() && m.phase.Fills() && !m.dead() &&
		!m.unwantedOrdered() &&
		(!m.missed() || d.storms.storm == nil)
}

// update takes one step for one member. It returns false if there is no room for the others either.
func (d *roll) update(m *member) bool {
	what := m.task(store.WorkUpdate)
	if m.Record.Protected != "" {
		d.block("REC-13", what, store.BlockedByProtection, d.protectedUntil(m))
		return true
	}
	if d.waits(what, d.flapping.blocker(m.slot)) {
		return true
	}
	// the agent can be reached in a moment, and a live update is enough
	if !m.failing() && m.Alive.Record.State != store.StreamOpen {
		d.block("ROLL-2", what, store.BlockedByAgent, store.BlockedFacts{Cause: m.judgment.Cause})
		return true
	}
	action, why := d.change(m)
	switch {
	case action == store.ActionLiveUpdate:
		return d.updateLive(m, why)
	case action == store.ActionRestart && d.spec.MaxUnavailableFor(d.spec.Budget.Roll, true) > 0:
		return d.updateByRestart(m, why)
	default:
		return d.updateByReplacement(m, why)
	}
}

// updateByRestart restarts a member in its place: the workload if its agent runs one and can be
// reached, else the machine.
func (d *roll) updateByRestart(m *member, why store.Cause) bool {
	what, most := m.task(store.WorkRestart), d.spec.MaxUnavailableFor(d.spec.Budget.Roll, true)
	if d.budget.unwell() >= most && m.healthy() || d.booted(m) && d.budget.unavailable() >= most {
		d.block("ROLL-1", what, store.BlockedByMaxUnavailable, store.BlockedFacts{Limit: most})
		return false
	}
	if d.waits(what, d.budget.sharedBlocker(m)) || d.waits(what, d.budget.plannedDeletionBlocker(m)) {
		return false
	}
	if d.awaitIdle(m, why) {
		return true // the others need not wait for it
	}
	if !d.traffic.quieten(m, why) {
		return false
	}
	level, heals := store.RestartMachine, m.restartedToHeal()
	// a roll never undoes a step of healing (HEAL-1)
	if m.reachable() && !(heals && m.Record.Restart.Level == store.RestartMachine) {
		level = store.RestartWorkload
	}
	d.healing.restart(m, level, "ROLL-2", why, heals, d.renewed(m))
	return true
}

// updateByReplacement creates a replacement first within max_expansion, otherwise removes the
// member first within max_unavailable.
func (d *roll) updateByReplacement(m *member, why store.Cause) bool {
	what := m.task(store.WorkReplace)
	if d.waits(what, d.budget.creationBlocker()) {
		return false
	}
	b := d.budget.boundsOf(d.spec.Budget.Roll)
	if d.budget.expansion() < b.expansion {
		if d.waits(what, d.budget.limitBlocker(false)) {
			return false
		}
		a := d.step(m, m.phase, "ROLL-1", effect(store.EffectReplaced), why, m.facts(), nil)
		a.Conditions = append(a.Conditions, d.common()...)
		d.addReplacement(a, m.slot, m, motive{store.PurposeRoll, "ROLL-1", why})
		d.writeSlot(a, m.slot)
		return true
	}
	if b.down == 0 || m.healthy() && d.budget.unwell() >= b.down || d.booted(m) && d.budget.unavailable() >= b.down {
		d.block("ROLL-1", what, store.BlockedByBudget, d.healing.claimRoom(m, b, d.budget.unwell()))
		return false
	}
	if d.waits(what, d.budget.sharedBlocker(m)) || d.waits(what, d.budget.plannedDeletionBlocker(m)) {
		return false
	}
	d.healing.removeFirst(m.slot, m, motive{store.PurposeRoll, "ROLL-1", why})
	return true
}

func (d *roll) blockUnwell(m *member) {
	d.block("HEAL-8", m.task(store.WorkUpdate), store.BlockedByUnhealthy,
		store.BlockedFacts{Count: d.budget.unwell(), Flag: d.spec.Heal.Policy == store.HealNone})
}

// updateFailing updates members that need the change most and lose nothing by it: an unhealthy
// instance that needs only a live update, and a replacement under way together with the member it
// replaces. The change may be what makes them healthy, for example a corrected check. So they wait
// for no turn and no budget; the order of a roll is for working members (ROLL-2, HEAL-8). They wait
// for a window, though: a failure is no reason to begin with a change that has to wait. A member
// that only the change can heal has its turn in the roll (ROLL-6).
func (d *roll) updateFailing() {
	if d.rollout == nil || d.blamed() {
		return
	}
	c, held := d.rollClosed(), false
	for _, sl := range d.order {
		for _, m := range sl.members {
			switch {
			case m.touched || !d.updatedFirst(m) || d.stages.testsCanaries() && !d.stages.isCanary(sl.number):
			case c != nil:
				held = held || !d.neverHealed(m)
			default:
				_, why := d.change(m)
				d.updateNow(m, why)
			}
		}
	}
	if held {
		d.waits(task{work: store.WorkRoll}, c)
	}
}

// updatedFirst reports whether a member is updated before its turn: it is not protected, and its
// agent can be reached.
func (d *roll) updatedFirst(m *member) bool {
	if !d.outdated(m) || m.Record.Protected != "" || m.unwantedOrdered() || !m.Alive.Present() ||
		m.Alive.Record.State != store.StreamOpen {
		return false
	}
	switch {
	case m.phase == store.Checking && d.templates.fallback != nil && m.Record.Template == d.templates.fallback.hash:
		return false // it was made from a template that is known to work (ROLL-9)
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

// updateLive makes a member's agent apply the change. That takes nothing down, but still goes step
// by step: the change may be wrong.
func (d *roll) updateLive(m *member, why store.Cause) bool {
	b := d.budget.boundsOf(d.spec.Budget.Roll)
	if most := max(1, b.expansion+b.down); d.count.updating >= most {
		d.block("ROLL-2", m.task(store.WorkUpdate), store.BlockedByConfirmations,
			store.BlockedFacts{Count: d.count.updating})
		return false
	}
	if m.healthy() && d.budget.unwell() > b.down {
		d.blockUnwell(m)
		return false
	}
	d.updateNow(m, why)
	return true
}

// updateNow makes the agent apply the change at once.
func (d *roll) updateNow(m *member, why store.Cause) {
	a := d.step(m, m.phase, "ROLL-2", effect(store.EffectUpdatedLive), why, m.facts(), d.renewed(m))
	a.Conditions = append(a.Conditions, d.common()...)
	d.count.updating++
}

// renewed puts the wanted configuration into a record. A configuration that returns before the
// agent has reported the one in between gets a new hash: the agent's last report still has the old
// hash, which would count as a confirmation.
func (d *roll) renewed(m *member) func(*store.Instance) {
	return func(r *store.Instance) {
		was := r.Config
		spot := r.Spec.Spot // the machine keeps its capacity type
		r.Spec, r.Template, r.Relaunch = d.spec.InstanceSpec(), d.hash, d.spec.Relaunch.Number
		r.Spec.Spot, r.Awaits = spot, nil
		r.Ailing = m.failsChecks()
		r.Config = r.Spec.ConfigHash()
		if r.Config != was && r.Config == m.Report.Record.Config {
			r.Config = fmt.Sprintf("%s-%d", r.Config, m.Modified)
		}
	}
}
