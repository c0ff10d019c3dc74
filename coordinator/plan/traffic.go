package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/store"
)

// A member of a load balancer is recorded before it is added, and the entry ends only once a
// listing proves that the balancer no longer has the member (LB-1). The entry says what is wanted;
// each plan compares it with the newest listing and requests what is missing (LB-3).

// traffic adds instances to load balancers and removes them.
type traffic struct {
	*draft
	memberCalls []MemberCall
	watched     map[string]bool // load balancers whose next List is awaited
}

// uses reports whether the group wants its instances in load balancers now.
func (d *traffic) uses() bool {
	return d.spec != nil && len(d.spec.LoadBalancers) > 0 && !d.spec.Deleting && !d.spec.Stopped
}

// balancerHas is how a load balancer has an instance, as far as something is waited for.
type balancerHas struct {
	state store.BalancerState
	text  string
}

// of is balancerHas of the named load balancer.
func (w balancerHas) of(name string) store.BlockedFacts {
	return store.BlockedFacts{Name: name, Balancer: w.state, Text: w.text}
}

// opens reports whether a healthy instance waits for its load balancers before it runs (LB-2), and
// takes the next step towards that.
func (d *traffic) opens(m *member) (waits bool) {
	if !d.uses() {
		return false
	}
	entries, problems, changed := d.wanted(m)
	if changed {
		d.step(m, m.phase, "LB-1", using(store.EffectJoins, entries), of(store.CauseWorks),
			[]store.Fact{streamSays(m.Instance)}, func(r *store.Instance) { r.Traffic = entries }).Conditions = append(
			[]store.Condition{m.Unchanged(), m.Report.Unchanged()}, d.specUnchanged()...)
		return true
	}
	for _, use := range d.spec.LoadBalancers {
		why, silent := problems[use.Name]
		if !silent {
			e := d.entryOf(m, use.Name)
			if e.confirmed(m) {
				continue
			}
			why, silent = d.notOpen(&e), d.silent(e.seen)
			d.watch(use.Name)
			d.wake(e.due)
		}
		if silent && d.replacesFailed(m) {
			continue // healing does not wait for a balancer that does not answer
		}
		of := why.of(use.Name)
		of.For = d.spec.MaxOpening
		d.block("LB-2", m.task(store.WorkHealth), store.BlockedByOpening, of)
		waits = true
	}
	return waits
}

// replacesFailed reports whether an instance heals its slot: no other member of the slot works.
func (d *traffic) replacesFailed(m *member) bool {
	return (m.Record.Replaces != "" || m.Record.Boot != "") && len(d.others(m, (*member).healthy)) == 0
}

// notOpen returns why a balancer has not confirmed an instance.
func (d *traffic) notOpen(e *entry) balancerHas {
	s := &e.has
	switch {
	case e.seen == nil:
		return balancerHas{state: store.BalancerUnconfigured}
	case !e.seen.SilentSince.IsZero():
		return balancerHas{store.BalancerSilent, e.seen.Problem}
	case e.calls.Problem != "":
		return balancerHas{store.BalancerCallFails, e.calls.Problem}
	case e.State == store.TrafficLeaving:
		return balancerHas{state: store.BalancerOldAddress}
	case !e.fresh || e.calls.Last == "" && !s.InPlace():
		return balancerHas{state: store.BalancerAdding}
	case s.Down > 0:
		return balancerHas{store.BalancerDown, e.downReason()}
	case s.Checking > 0:
		return balancerHas{state: store.BalancerChecking}
	default:
		return balancerHas{state: store.BalancerMissing}
	}
}

// judge applies a load balancer's verdict: if the instance did not become healthy there in time, or
// if heal.on_load_balancer asks for it (LB-2, DET-10).
func (d *traffic) judge(m *member) {
	if d.spec == nil || len(m.Record.Traffic) == 0 || m.judgment.Verdict != store.Live || !m.Alive.Present() ||
		m.Alive.Record.State != store.StreamOpen || !reportIsCurrent(m.Instance) || !m.Report.Record.Healthy {
		return
	}
	for _, e := range d.entries(m) {
		if !e.seen.answers() || d.spec.Balancer(e.Balancer) == nil {
			continue
		}
		switch {
		case m.phase == store.Checking && e.State == store.TrafficJoining && !e.due.IsZero() && !e.confirmed(m):
			if d.now.Before(e.due) {
				d.wake(e.due)
				continue
			}
			why := d.notOpen(&e)
			m.judgment = Judgment{
				Verdict: store.Stuck, Rule: "DET-10",
				Cause: store.Cause{
					Kind: store.CauseNotOpened, Name: e.Balancer, For: e.Timer.For, Balancer: why.state, Text: why.text,
				},
				Facts: []store.Fact{
					streamSays(m.Instance),
					{Kind: store.FactBalancer, Name: e.Balancer, Balancer: why.state, Text: why.text},
				},
			}
		case m.phase == store.Running && d.spec.Heal.OnLoadBalancer && e.State == store.TrafficServing && e.fresh &&
			e.seen.Begun.After(m.PhaseStart) && e.has.Unhealthy() && e.seen.Down*2 <= len(e.seen.Members):
			m.judgment = Judgment{
				Verdict: store.Unhealthy, Rule: "LB-2",
				Cause: store.Cause{Kind: store.CauseCalledDown, Name: e.Balancer, Text: e.downReason()},
				Facts: []store.Fact{
					streamSays(m.Instance), {Kind: store.FactBalancer, Name: e.Balancer, Balancer: store.BalancerDown},
				},
			}
		}
	}
}

// silentBalancer names a load balancer that must answer before an instance in it is taken out as
// planned; "" if all do.
func (d *traffic) silentBalancer(m *member) (name string, of *Balancer) {
	if d.spec == nil || d.spec.Deleting || d.spec.Stopped || m.failing() || m.noticed() || m.goesNow() {
		return "", nil
	}
	for _, e := range d.entries(m) {
		if e.State.Wanted() && !d.ignored(&e) && !e.seen.answers() {
			return e.Balancer, e.seen
		}
	}
	return "", nil
}

// leavingBlocker returns the load balancer that does not answer, so that planned work may not take
// the instance out of it (LB-2).
func (d *traffic) leavingBlocker(m *member) *blocker {
	name, b := d.silentBalancer(m)
	if name == "" {
		return nil
	}
	if b == nil {
		return blocked("LB-2", store.BlockedByBalancer, balancerHas{state: store.BalancerUnconfigured}.of(name))
	}
	why := balancerHas{store.BalancerCallFails, b.Problem}
	return &blocker{rule: "LB-2", why: store.BlockedByBalancer, of: why.of(name), balancer: name}
}

// watch requests a List of a load balancer soon.
func (d *traffic) watch(name string) {
	if d.watched == nil {
		d.watched = map[string]bool{}
	}
	d.watched[name] = true
}

// follow compares the memberships of all instances with the load balancers' listings (LB-3). It
// comes after the other deciders: a record is changed by one action.
func (d *traffic) follow() {
	if d.g.Unreadable != "" {
		return
	}
	for _, m := range d.members {
		if len(m.Record.Traffic) == 0 && (!d.uses() || m.phase != store.Running) || m.touched || d.keepTraffic(m) {
			continue
		}
		if m.phase == store.Deleting {
			d.blockRemoval(m)
		}
		for _, e := range d.entries(m) {
			d.askBalancer(m, &e)
		}
	}
}

// keepTraffic updates the entries of a record, and reports whether they changed.
func (d *traffic) keepTraffic(m *member) bool {
	entries, changed, effect, why := slices.Clone(m.Record.Traffic), false, store.Effect{}, store.Cause{}
	if m.Record.Phase == store.Running && m.working() && d.uses() && d.mayMove() {
		var wants bool
		if entries, _, wants = d.wanted(m); wants {
			changed, effect, why = true, using(store.EffectJoins, entries), of(store.CauseJoins)
		}
	}
	entries = slices.DeleteFunc(entries, func(t store.Traffic) bool {
		e := d.entryOf(m, t.Balancer)
		gone := e.State == store.TrafficLeaving && (e.calls.Taken ||
			e.fresh && e.calls.Last == MemberRemove && e.has.Gone())
		changed = changed || gone
		return gone
	})
	for i := range entries {
		e := d.entryOf(m, entries[i].Balancer)
		switch {
		case e.seen == nil || entries[i].State != e.State:
		case e.State == store.TrafficJoining && m.Record.Phase == store.Running && e.confirmed(m):
			entries[i], changed = d.turned(entries[i], store.TrafficServing, 0), true
		case d.spec != nil && d.spec.Balancer(e.Balancer) == nil && m.Record.Phase == store.Running && d.mayMove():
			if e.State.Wanted() {
				entries[i] = d.turned(entries[i], store.TrafficDraining, m.Record.Spec.Drain.Timeout.D())
				changed, effect, why = true, using(store.EffectLeaves, entries[i:i+1]), of(store.CauseLeaves)
			} else if e.State == store.TrafficDraining && (d.ended(m, &e) || e.due.IsZero() || !d.now.Before(e.due)) {
				entries[i], changed = d.turned(entries[i], store.TrafficLeaving, 0), true
			}
			d.wake(e.due)
		}
	}
	if !changed {
		return false
	}
	a := d.step(m, m.phase, "LB-1", effect, why, nil, func(r *store.Instance) {
		r.Traffic, r.Last = entries, m.Record.Last
	})
	a.NoJournal = effect.Kind == ""
	if d.spec != nil {
		a.Conditions = append(a.Conditions, d.specUnchanged()...)
	}
	return true
}

// mayMove reports whether the group may add instances to, or remove them from, its load balancers.
func (d *traffic) mayMove() bool { return d.spec != nil && d.mayAct() }

// askBalancer requests what is missing. While the shard is on hold, the group is paused, or its
// state is in doubt, nothing is removed (SAFE-18), but missing members are still added.
func (d *traffic) askBalancer(m *member, e *entry) {
	if e.seen == nil || m.phase == store.Pending || m.phase == store.Creating ||
		e.calls.Taken && !e.State.Wanted() {
		return
	}
	kind, of := d.missing(m, e)
	if kind == "" {
		return
	}
	held := d.s.Shard.Record.Hold != nil || d.s.stale() || d.paused() || d.damage.untouchable(m)
	if kind != MemberAdd && held {
		return
	}
	d.watch(e.Balancer)
	if e.calls.Busy || of.Instance == "" {
		return
	}
	if d.now.Before(e.calls.RetryAt) {
		d.wake(e.calls.RetryAt)
		return
	}
	d.memberCalls = append(d.memberCalls, MemberCall{
		Kind: kind, Balancer: e.Balancer, Group: d.g.Name, Member: of, Slot: m.Record.Place(), Record: m.Modified,
		Again: e.State == store.TrafficServing && kind == MemberAdd, Conditions: []store.Condition{m.Unchanged()},
	})
}

// missing returns the call that a load balancer needs; "" if none. The member has no instance while
// a List is awaited.
func (d *traffic) missing(m *member, e *entry) (kind MemberCallKind, of balancer.Member) {
	of = e.member(m, d.spec)
	moved := balancer.Member{} // somewhere else, which only a List of a balancer with names shows
	for _, has := range e.seen.listing(m.ID()).Has(m.ID()) {
		if has.Address != e.Address || has.Port != e.Port {
			moved = has
		}
	}
	waits := balancer.Member{}
	switch e.State {
	case store.TrafficJoining, store.TrafficServing:
		switch {
		case e.calls.Last == MemberAdd && !e.fresh:
			return MemberAdd, waits
		case e.seen.Begun.IsZero() && (e.State == store.TrafficServing || e.calls.Last == MemberAdd):
			return MemberAdd, waits // unknown whether it is there
		case !e.seen.Begun.IsZero() && e.fresh && moved.Instance != "":
			return MemberRemove, moved
		case e.fresh && e.has.InPlace() && e.has.Answered > 0:
			return "", of
		}
		return MemberAdd, of
	case store.TrafficDraining:
		switch {
		case e.calls.Last == MemberDrain && !e.fresh:
			return MemberDrain, waits
		case e.calls.Last == MemberDrain && e.has.Leaving():
			if !d.ended(m, e) {
				d.watch(e.Balancer) // for the end of its connections
			}
			return "", of
		}
		return MemberDrain, of
	case store.TrafficLeaving:
		switch {
		case e.calls.Last == MemberRemove && !e.fresh:
			return MemberRemove, waits
		case e.calls.Last == MemberRemove && e.has.Has == 0 && moved.Instance != "":
			return MemberRemove, moved
		}
		return MemberRemove, of // keepTraffic drops the entry when it is gone
	}
	return "", of
}

// using is an effect on the load balancers of entries.
func using(kind store.EffectKind, entries []store.Traffic) store.Effect {
	names := make([]string, len(entries))
	for i, t := range entries {
		names[i] = t.Balancer
	}
	return store.Effect{Kind: kind, Names: names}
}

// removeStrays removes instances that were deleted on purpose and that late calls have added to
// load balancers again.
func removeStrays(s *Snapshot) (calls []MemberCall) {
	if s.Shard.Record.Hold != nil || s.stale() {
		return nil
	}
	for name, b := range s.Balancers {
		for _, m := range b.Strays {
			calls = append(calls, MemberCall{
				Kind: MemberRemove, Balancer: name, Member: m,
				Conditions: []store.Condition{store.Absent(s.Keys.Instance(m.Instance))},
			})
		}
	}
	slices.SortFunc(calls, func(a, b MemberCall) int {
		return strings.Compare(a.Balancer+" "+a.Member.Instance, b.Balancer+" "+b.Member.Instance)
	})
	return calls
}

// opened returns the entries of an instance that begins to run.
func (d *traffic) opened(m *member) []store.Traffic {
	entries := slices.Clone(m.Record.Traffic)
	for i := range entries {
		if e := m.entry(&d.view, i); e.State == store.TrafficJoining && e.seen != nil && e.confirmed(m) {
			entries[i] = d.turned(entries[i], store.TrafficServing, 0)
		}
	}
	return entries
}

// leaveTraffic takes a draining instance out of its load balancers, and notifies its agent after
// that. An instance with a notice serves until its replacement does. If the load balancers do not
// answer, or there is no replacement, half of the time is for them and half for the hook.
func (d *traffic) leaveTraffic(m *member, rec *store.Drain, due time.Time) bool {
	if len(m.Record.Traffic) == 0 {
		return false
	}
	half := due.Add(-rec.Timer.For.D() / 2)
	heir := len(d.others(m, d.proven)) > 0
	switch {
	case m.serves() && (!m.noticed() || heir || !d.now.Before(half)):
		why := of(store.CauseDrains)
		if m.noticed() && heir {
			why = of(store.CauseHeirServes)
		}
		d.step(m, store.Draining, "LB-1", using(store.EffectLeaves, m.Record.Traffic), why, nil,
			func(r *store.Instance) {
				r.Traffic = d.allTurned(r.Traffic, store.TrafficDraining, m.Record.Spec.Drain.Timeout.D())
			})
		return true
	case m.serves():
		d.wake(half)
	case rec.Token != "" || len(m.Record.Spec.Drain.Hook) == 0:
	case d.leftTraffic(m) || !d.now.Before(half):
		d.step(m, store.Draining, "DRAIN-1", effect(store.EffectHookBegun), of(store.CauseQuiet),
			nil, func(r *store.Instance) {
				drain := *rec
				drain.Token = d.unique(m.ID())
				r.Drain = &drain
			})
		return true
	default:
		d.wake(half)
	}
	return false
}

// serves reports whether an instance should be in service in any balancer.
func (m *member) serves() bool {
	return slices.ContainsFunc(m.Record.Traffic, func(t store.Traffic) bool { return t.State.Wanted() })
}

// quieten takes a healthy instance out of its load balancers before a planned restart, and reports
// whether that is done. If the restart does not happen, keepTraffic adds it again.
func (d *traffic) quieten(m *member, why store.Cause) bool {
	limit := m.Record.Spec.Drain.Timeout.D()
	if len(m.Record.Traffic) == 0 || !m.healthy() || limit == 0 {
		return true
	}
	m.quiet = true
	if m.serves() {
		a := d.step(m, m.phase, "LB-1", using(store.EffectLeavesRestart, m.Record.Traffic), why, m.facts(),
			func(r *store.Instance) { r.Traffic = d.allTurned(r.Traffic, store.TrafficDraining, limit) })
		a.Conditions = append(a.Conditions, d.common()...)
		return false
	}
	over := d.allEntries(m, func(e *entry) bool { return d.ended(m, e) || !e.due.IsZero() && !d.now.Before(e.due) })
	if !over {
		d.blockTraffic("LB-1", m.task(store.WorkRestart), m, m.Record.Spec.Drain.Timeout)
	}
	return over
}

// blockTraffic returns which load balancer an instance has not left; false if there is none.
func (d *traffic) blockTraffic(rule string, what task, m *member, limit store.Duration) bool {
	for _, e := range d.entries(m) {
		if d.ended(m, &e) {
			continue
		}
		d.wake(e.due)
		of := store.BlockedFacts{Name: e.Balancer, For: limit}
		switch {
		case e.seen == nil:
			of.Balancer = store.BalancerUnconfigured
		case e.State.Wanted():
			of.Balancer = store.BalancerServes
		case !e.seen.SilentSince.IsZero():
			of.Balancer, of.Text = store.BalancerSilent, e.seen.Problem
		case e.calls.Problem != "":
			of.Balancer, of.Text = store.BalancerCallFails, e.calls.Problem
		case !d.left(&e) || !e.fresh:
			of.Balancer = store.BalancerRemoving
		case e.has.Silent > 0:
			of.Balancer = store.BalancerPartSilent
		case e.has.Connections == balancer.UnknownConnections || !e.seen.Capabilities.DrainEnds:
			of.Balancer = store.BalancerUncounted
		default:
			of.Balancer, of.Count = store.BalancerConnections, rounded(e.has.Connections)
		}
		d.block(rule, what, store.BlockedByTraffic, of)
		return true
	}
	return false
}

// rounded rounds a number of connections up, so that the status is not written for each one that
// ends.
func rounded(n int) int {
	if n <= 10 {
		return n
	}
	for step := 20; ; step *= 10 {
		for _, most := range []int{step, step / 2 * 5, step * 5} {
			if n <= most {
				return most
			}
		}
	}
}

// blockRemoval returns which load balancer has not removed an instance that is being deleted.
func (d *traffic) blockRemoval(m *member) {
	for _, e := range d.entries(m) {
		why := balancerHas{store.BalancerCallFails, e.calls.Problem}
		switch {
		case d.ignored(&e):
			continue
		case e.seen == nil:
			why = balancerHas{state: store.BalancerUnconfigured}
		case !e.seen.SilentSince.IsZero():
			why = balancerHas{store.BalancerSilent, e.seen.Problem}
		case why.text == "":
			continue // it will be done in a moment
		}
		d.block("LB-1", m.task(store.WorkDelete), store.BlockedByBalancer, why.of(e.Balancer))
		return
	}
}
