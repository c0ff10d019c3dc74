package plan

import (
	"github.com/leasehold/leasehold/store"
)

// A restart goes stopping → starting → checking. The record has its level, its token and the boot
// before it, so that any leader can continue it, and it happens once (SAFE-8): the agent reports
// the token of the last restart it carried out, and a restarted machine reports another boot.

// nextRestart returns the level at which a failed member is restarted next: first the workload, if
// its agent runs one and can be reached, then the machine; "" once both have failed (HEAL-1).
func (d *healing) nextRestart(m *member) string {
	switch {
	case m.phase == store.Pending || m.phase == store.Creating || !m.Record.Managed:
		return ""
	case m.restartedToHeal() && m.Record.Restart.Level == store.RestartMachine:
		return ""
	case m.restartedToHeal(), !m.reachable():
		return store.RestartMachine
	default:
		return store.RestartWorkload
	}
}

// restartedToHeal reports whether the member was restarted because it had failed, and has not been
// healthy since.
func (m *member) restartedToHeal() bool { return m.Record.Restart != nil && m.Record.Restart.Heals }

// reachable reports whether the member's agent runs a workload and can be asked to restart it.
func (m *member) reachable() bool {
	return len(m.Record.Spec.Workload.Run) > 0 && m.Alive.Present() && m.Alive.Record.State == store.StreamOpen
}

// restart begins a restart. The caller has applied the budgets.
func (d *healing) restart(m *member, level, rule string, why store.Cause, heals bool,
	change func(*store.Instance),
) *Action {
	rec := store.Restart{
		Level: level, Rule: rule, Token: d.unique(m.ID()), Boot: m.boot(), Listed: m.listedBoot(),
		At: d.now.UTC(), Heals: heals,
	}
	a := d.step(m, store.Stopping, rule, named(store.EffectRestarting, level), why, m.facts(), func(r *store.Instance) {
		r.Restart, r.Counted = &rec, false
		if change != nil {
			change(r)
		}
		rec.Renews = level == store.RestartMachine && len(r.Spec.Workload.Run) > 0 && r.Config != "" &&
			r.Config != m.Report.Record.Config
	})
	a.Conditions = append(append(a.Conditions, d.common()...), m.proof(d.s.Keys)...)
	return a
}

// boot returns the boot that the agent reported last; "" if it never reported one.
func (m *member) boot() string {
	if m.Alive.Present() {
		return m.Alive.Record.BootID
	}
	return m.Report.Record.BootID
}

// listedBoot returns the present boot as the provider identifies it; "" if the last List may show
// the previous boot, because it began before the agent reported.
func (m *member) listedBoot() string {
	if m.Alive.Present() && m.Sighting.Begun.Before(m.StreamSince) {
		return ""
	}
	return m.Sighting.BootID
}

// stopped handles a restart that was carried out: the instance comes up again.
func (d *progress) stopped(m *member) {
	r := m.Record.Restart
	if r == nil {
		return
	}
	var why store.CauseKind
	switch {
	case r.Level == store.RestartWorkload && m.Alive.Present() && m.Report.Record.Restarted == r.Token:
		why = store.CauseWorkloadRestarted
	case r.Level == store.RestartMachine && m.Calls.Restarted == r.Token:
		why = store.CauseMachineRestarted
	case r.Boot != "" && m.Alive.Present() && m.Alive.Record.BootID != r.Boot:
		why = store.CauseOtherBoot
	case r.Level == store.RestartMachine && m.bootedAnew(r):
		why = store.CauseOtherBootListed
	default:
		return
	}
	d.step(m, store.Starting, r.Rule, effect(store.EffectRestarted), of(why), []store.Fact{streamSays(m.Instance)}, nil)
}

// started handles a restarted instance that has registered again.
func (d *progress) started(m *member) {
	r := m.Record.Restart
	if !m.Alive.Present() || m.Alive.Record.State != store.StreamOpen {
		return
	}
	if r != nil && r.Level == store.RestartMachine && r.Boot != "" && m.Alive.Record.BootID == r.Boot {
		return // it is still the previous boot
	}
	rule := "HEAL-1"
	if r != nil {
		rule = r.Rule
	}
	a := d.step(m, store.Checking, rule, effect(store.EffectBack), d.after(m),
		[]store.Fact{streamSays(m.Instance)}, nil)
	a.Conditions = append(a.Conditions, m.Alive.Unchanged())
}

// bootedAnew reports whether the provider lists another boot than the one that the restart was to
// end.
func (m *member) bootedAnew(r *store.Restart) bool {
	return r.Listed != "" && m.Sighting.BootID != "" && m.Sighting.BootID != r.Listed
}

// mustRestart reports whether the provider must be asked to restart a machine: repeatedly, but
// never once another boot of it reports or is listed. If Lists identify boots, one must have come
// first: the previous leader may already have asked.
func (m *member) mustRestart() bool { return m.awaitsRestart() && !m.asksAfterList() }

// awaitsRestart reports whether nothing shows that the provider has restarted a machine as it must.
func (m *member) awaitsRestart() bool {
	r := m.Record.Restart
	if m.phase != store.Stopping || r == nil || r.Level != store.RestartMachine || m.Calls.Restarted == r.Token ||
		m.Calls.Missing || m.bootedAnew(r) {
		return false
	}
	return !m.Alive.Present() || r.Boot == "" || m.Alive.Record.BootID == r.Boot
}

// asksAfterList reports whether the provider may be asked to restart a machine only after the first
// List.
func (in *Instance) asksAfterList() bool {
	r := in.Record.Restart
	return r != nil && r.Listed != "" && in.Sighting.Begun.IsZero()
}

// restartAllowed reports whether a restart may take a member down: within max_unavailable; a member
// that is already down takes nothing down (HEAL-3, HEAL-5).
func (d *healing) restartAllowed(m *member) bool {
	return !d.booted(m) || m.slot.up > 1 || d.budget.unavailable() < d.spec.MaxUnavailableFor(d.spec.Budget.Heal, true)
}
