package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// heal restarts or replaces what has failed, and replaces what is condemned or doomed, slot by
// slot. Those that were ordered to go now come first: they wait for no budget, but use it.
func (d *draft) heal() {
	for _, sl := range d.order {
		if sl.goesNow() {
			d.healSlot(sl)
		}
	}
	for _, sl := range d.order {
		if len(sl.members) == 1 && !sl.touched {
			if m := sl.members[0]; m.phase == store.Running && !m.unwanted() {
				continue // as nearly all are
			}
		}
		if !sl.goesNow() {
			d.healSlot(sl)
		}
	}
}

// goesNow reports whether an instance in the slot was ordered to go without waiting.
func (sl *slot) goesNow() bool {
	return slices.ContainsFunc(sl.members, (*member).goesNow)
}

// goesNow reports whether it was ordered to go without waiting for a replacement.
func (m *member) goesNow() bool { return m.Record.Condemned != nil && m.Record.Condemned.Now }

// healSlot decides for a slot with failed or condemned members, or with more than one.
func (d *draft) healSlot(sl *slot) {
	var good, bad []*member
	for _, m := range sl.members {
		switch {
		case m.touched:
			return // decided on the next cache
		case m.gone() || m.dead() || !m.phase.Fills():
		case m.unwanted():
			bad = append(bad, m)
		default:
			good = append(good, m)
		}
	}
	switch {
	case len(good) > 0 && len(good)+len(bad) > 1:
		d.settle(sl, good, bad)
	case len(bad) > 1:
		d.thinOut(sl, bad)
	case len(bad) == 1:
		d.mend(sl, bad[0])
	}
}

// leftAlone reports whether a member must not be healed, and records why.
func (d *draft) leftAlone(m *member) bool {
	what := m.task(store.WorkReplace)
	switch {
	case !m.failing() || m.Record.Condemned != nil:
		return false
	case d.spared(m):
		return true
	case d.spec.Heal.Policy == store.HealNone && m.doom.rule == "" && len(d.others(m, usable)) == 0:
		// else its place is taken: it need not be healed
		d.block("HEAL-1", what, store.BlockedByHealPolicy, store.BlockedFacts{Text: m.judgment.Why})
		return true
	case d.breaker != nil && m.failsChecks() && m.doom.rule == "" && m.ID() != d.breaker.Probe:
		d.block("ROLL-7", what, store.BlockedByBreaker,
			store.BlockedFacts{Count: d.breaker.Count, Limit: d.breaker.Limit, For: d.spec.Storm.ProbeAfter})
		return true
	}
	return d.heldByStorm(m)
}

// spared reports whether a member is protected from healing, and records that. An order to go is
// stronger.
func (d *draft) spared(m *member) bool {
	if m.Record.Protected != store.ProtectHeal || !m.failing() || m.Record.Condemned != nil {
		return false
	}
	d.block("REC-13", m.task(store.WorkReplace), store.BlockedByHealProtection,
		store.BlockedFacts{Text: m.judgment.Why})
	return true
}

// mend begins the healing of a slot whose only member has failed, is condemned or doomed.
func (d *draft) mend(sl *slot, m *member) {
	if sl.touched || d.leftAlone(m) || !m.failing() && d.doomedAsMade(m) > 0 { // saveNoticed has told why
		return
	}
	failed := m.failing() && m.Record.Condemned == nil && m.doom.rule == ""
	if !m.goesNow() && d.waits(sl, m.task(store.WorkReplace)) {
		return // also for one that works and has to go: those made in its place fail as any others do (FLAP-2)
	}
	if failed && d.spec.Heal.Policy == store.HealRestart {
		if level := d.nextRestart(m); level != "" && d.restartAllowed(m) {
			if d.mayDelete(m.task(store.WorkRestart), m) {
				d.mendByRestart(sl, m, level)
			} else {
				d.waiting = m.ID() // no extra instance for one that only waits for its turn (HEAL-4)
			}
			return
		}
	}
	d.replace(sl, m)
}

// mendByRestart restarts a failed member in its place (HEAL-1, HEAL-3).
func (d *draft) mendByRestart(sl *slot, m *member, level string) {
	if d.fail(sl, m) {
		d.noteFlapping(sl, m)
		return
	}
	a := d.restart(m, level, "HEAL-1", "restarting its "+level, because(m.judgment.Why), true, nil)
	d.writeSlot(a, sl)
}

// noteFlapping records that a failure has made a slot flap: what failed stays as it is until the
// wait is over.
func (d *draft) noteFlapping(sl *slot, m *member) {
	rule, what := "FLAP-1", sl.waiting()
	if sl.Record.Errored != "" {
		rule = "FLAP-3"
	}
	a := d.step(m, m.phase, rule, what, because(m.judgment.Why), m.evidence(), func(r *store.Instance) { r.Counted = true })
	a.Conditions = append(a.Conditions, m.proof(d.s.Keys)...)
	d.writeSlot(a, sl)
}

// replace begins the replacement of a slot's only member.
func (d *draft) replace(sl *slot, m *member) {
	removeFirst, ok := d.turn(m)
	if !ok {
		if m.failing() && !sl.touched && d.boundsOf(d.spec.Budget.Heal) != (bounds{}) {
			d.waiting = m.ID()
		}
		return
	}
	failed := m.Record.Condemned == nil && m.doom.rule == ""
	if failed && d.fail(sl, m) {
		d.noteFlapping(sl, m)
		return
	}
	rule, why := m.grounds("HEAL-2")
	if removeFirst {
		d.removeFirst(sl, m, rule, why)
		return
	}
	a := d.step(m, m.phase, rule, replaced, why, m.evidence(), func(r *store.Instance) { r.Counted = failed })
	a.Conditions = append(append(a.Conditions, d.common()...), m.proof(d.s.Keys)...)
	d.addReplacement(a, sl, m, rule, why)
	d.writeSlot(a, sl)
}

// replaced is what happens to a member whose replacement is requested and that stays until that is
// there.
const replaced = "replacement requested"

func (d *draft) addReplacement(a *Action, sl *slot, m *member, rule string, why store.Cause) {
	r, write := d.newMember(sl, m.ID(), rule, "takes the place of "+m.ID()+": "+reason.Short(why))
	requested := "replacement " + r.ID() + " requested"
	a.Replacement = r.ID()
	if a.What == replaced {
		a.What = requested
	} else {
		a.What += "; " + requested
	}
	d.madeFrom(a, &r.Record)
	a.Conditions = append(a.Conditions, store.Absent(r.Key))
	a.Writes = append(a.Writes, write)
}

// removeFirst removes a member to make room. Unless max_expansion has room for two machines its
// slot is filled again when the machine is gone: until then it counts (REC-18).
func (d *draft) removeFirst(sl *slot, m *member, rule string, why store.Cause) {
	a := d.retire(m, rule, "deleting", why, m.evidence(), m.proof(d.s.Keys)...)
	what := m.task(store.WorkReplace)
	sl.Record.Vacated = &store.Vacated{Instance: m.ID(), Roll: rule == "ROLL-1"}
	switch {
	case m.phase != store.Deleting:
	case d.waits(sl, what):
		a.What += "; " + sl.waiting()
	case d.atCapacity(sl) || d.overLimit(true) != nil:
		a.What += "; its slot is filled when its machine is gone"
	case d.mayCreate(what):
		d.addReplacement(a, sl, m, rule, why)
	}
	d.writeSlot(a, sl)
}

// turn applies the budgets: whether it is a member's turn to be replaced and, if so, whether it is
// removed first.
func (d *draft) turn(m *member) (removeFirst, ok bool) {
	b := d.boundsOf(d.spec.Budget.Heal)
	what := m.task(store.WorkReplace)
	if m.goesNow() { // whether its place can be taken or not
		return true, d.mayDelete(m.task(store.WorkRemove), m)
	}
	if !d.roomToCreate() && m.failing() && len(d.zones()) > 0 {
		if leaving := d.giveWay(m, (*member).comingUp); leaving != "" {
			d.block("HEAL-7", what, store.BlockedByMaxCreating, store.BlockedFacts{Other: leaving})
			return false, false
		}
	}
	if m.touched || !d.mayCreate(what) {
		return false, false
	}
	limited := d.overLimit(true) != nil
	if d.expansion() < b.expansion && !limited {
		return false, true
	}
	if d.mustKeep(m) && !limited {
		of := d.usedUp(m, b, d.unavailable())
		of.ExpansionUsed, of.DownUsed = 0, 0 // they would only change the status
		d.block("SAFE-2", what, store.BlockedByStormProbe, of)
		return false, false
	}
	// An instance that never booted is unavailable already: removing it takes nothing down
	// (HEAL-5). Else several of them would use the budget up that their own replacement needs.
	used := b.down == 0 || d.booted(m) && d.unavailable() >= b.down
	if (used || d.mustKeep(m)) && d.limited(what, true) {
		return false, false
	}
	if used {
		d.block("HEAL-2", what, store.BlockedByBudget, d.usedUp(m, b, d.unavailable()))
		return false, false
	}
	if !d.mayDelete(what, m) {
		return false, false
	}
	return true, true
}

// usedUp returns the use of both budgets, and has an instance of a roll make room for a member that
// has failed.
func (d *draft) usedUp(m *member, b bounds, used int) store.BlockedFacts {
	if b == (bounds{}) {
		return store.BlockedFacts{} // however many are in use: a count that says nothing would change the status
	}
	of := store.BlockedFacts{
		Expansion: b.expansion, ExpansionUsed: max(0, d.expansion()), Down: b.down, DownUsed: used,
	}
	if b.expansion > 0 && m.failing() && m.phase.Fills() {
		of.Other = d.giveWay(m, (*member).standing)
	}
	return of
}

// mustKeep reports whether a member is not removed before its replacement is there.
func (d *draft) mustKeep(m *member) bool {
	return m.missed() && d.storm != nil && d.storm.Ended == "" && d.boundsOf(d.spec.Budget.Heal).expansion > 0
}

// grounds are the rule and the reason for which a member has to go: the given rule if it failed, or
// an order, or its doom.
func (m *member) grounds(rule string) (string, store.Cause) {
	switch {
	case m.Record.Condemned != nil:
		return "REC-16", orderedBy(m.Record.Condemned.By)
	case m.doom.rule != "":
		return m.doom.rule, because(m.doom.why)
	default:
		return rule, because(m.judgment.Why)
	}
}

// thinOut leaves one of several members that failed or are condemned: a replacement that failed
// must not take the room of the next one (HEAL-13). One that works stays if there is one, else one
// that has fully booted (HEAL-5), else the oldest.
func (d *draft) thinOut(sl *slot, bad []*member) {
	keep := bad[0]
	for _, m := range bad {
		if d.use(m) > d.use(keep) {
			keep = m
		}
	}
	for _, m := range bad {
		switch {
		case m == keep, d.spared(m):
			continue
		case keep.healthy() && !d.proven(keep) && d.booted(m):
			d.block("ROLL-3", m.task(store.WorkRemove), store.BlockedByStartup, store.BlockedFacts{Other: keep.ID()})
			return // then that one keeps the slot
		case sl.touched:
			return // the rest on the next cache
		case keep.seemsDown() && !m.goesNow():
			return // until it is known whether that one can keep the slot
		case m.missed() && d.heldByStorm(m):
			continue
		case !d.mayDelete(m.task(store.WorkRemove), m):
			return
		}
		rule, why := m.grounds("HEAL-13")
		d.fail(sl, m)
		a := d.retire(m, rule, "deleting",
			followed(why, "; "+keep.ID()+" keeps the slot until there is a better one"),
			m.evidence(),
			append(m.proof(d.s.Keys), keep.Unchanged())...)
		d.writeSlot(a, sl)
	}
}

// use is how much a slot still has of a member that is to leave it.
func (d *draft) use(m *member) int {
	switch {
	case m.healthy() && d.proven(m):
		return 5
	case m.healthy():
		return 4
	case d.booted(m) && !m.failing(): // it may be cut off for a while
		return 3
	case d.booted(m):
		return 2
	case m.phase == store.Running:
		return 1
	default:
		return 0
	}
}

// proof are the keys on which the verdict of a member rests, as they were seen (SAFE-4).
func (m *member) proof(keys store.Keys) []store.Condition {
	if m.Record.Phase == store.Pending || m.Record.Phase == store.Creating {
		return nil
	}
	out := []store.Condition{store.At(keys.Alive(m.ID()), m.Alive.Modified)}
	if v := m.judgment.Verdict; v == store.Unhealthy || v == store.Stuck {
		out = append(out, store.At(keys.Report(m.ID()), m.Report.Modified))
	}
	return out
}

// usable reports whether a member fills its slot and nothing speaks against it.
func usable(m *member) bool { return m.fills() && !m.unwanted() }

// others lists the members in the same slot for which a property holds.
func (d *draft) others(m *member, property func(*member) bool) []*member {
	if m.slot == nil {
		return nil
	}
	var out []*member
	for _, o := range m.slot.members {
		if o != m && !o.gone() && property(o) {
			out = append(out, o)
		}
	}
	return out
}

// giveUp withdraws a creation that cannot succeed: the provider has refused it for good, fails on a
// template that is not wanted any more, or has failed for as long as DET-10 gives. It is no failure
// of the slot (HEAL-13).
func (d *draft) giveUp(m *member) {
	if m.Calls.NoRoom && m.phase == store.Creating && !m.touched && !m.Calls.Busy &&
		(m.Record.Converts || !d.withdrawRebalance(m)) {
		d.moveZone(m)
	}
	d.fallBack(m)
	if m.touched || m.Calls.Busy || m.Calls.Problem == "" {
		return
	}
	var why string
	switch due := m.PhaseStart.Add(m.patience()); {
	case m.Calls.Refused:
		why = "the provider refuses it: " + m.Calls.Problem
		d.refusedFallback(m)
	case d.obsolete(m):
		why = "the template has changed since it failed: " + m.Calls.Problem
	case m.phase == store.Creating && !d.now.Before(due):
		why = fmt.Sprintf("the provider did not make it within %s: %s", m.patience(), m.Calls.Problem)
	default:
		d.wake(due)
		return
	}
	if d.mayDelete(m.task(store.WorkWithdraw), m) {
		d.retire(m, "HEAL-13", "withdrawn", because(why), nil)
	}
}

// patience is how long a creation may keep failing before the room that it takes goes to another.
func (m *member) patience() time.Duration {
	if limit := m.Record.Spec.MaxChecking.D(); limit > 0 {
		return limit
	}
	return m.Record.Spec.RegistrationTimeout.D()
}

// moveZone tries a creation in another zone when its own has no room: nothing was made there
// (REC-3).
func (d *draft) moveZone(m *member) {
	market := MarketOf(m.Record.Spec)
	full, to := m.Record.Zone, d.zoneFor(m.slot, &m.Record.Spec)
	if to == "" || to == full || !d.full(market, full) || d.full(market, to) {
		return
	}
	a := d.step(m, store.Creating, "REC-3", "tried in zone "+to, because("zone "+full+" has no room"), []string{m.Calls.Problem},
		func(r *store.Instance) { r.Zone = to })
	a.Conditions = append(a.Conditions, d.common()...)
	m.movesTo = to
	d.countZone(m.slot)
}

// mostFailures is how many failures a slot remembers: as many as flap.failures may demand.
const mostFailures = 100

// fail counts a member's failure against its slot, once, and reports whether the slot now flaps and
// has to wait (FLAP-1, FLAP-2). The caller writes the slot.
func (d *draft) fail(sl *slot, m *member) (wait bool) {
	if m.Record.Counted || m.Record.Condemned != nil || m.doom.rule != "" {
		return sl.retry.After(d.now) || sl.Record.Errored != ""
	}
	f, rec := d.spec.Flap, &sl.Record
	rec.Template = d.hash
	failure := store.Failure{
		At: d.now.UTC(), Instance: m.ID(), Verdict: m.judgment.Verdict, Why: m.judgment.Why,
		Template: m.Record.Template,
	}
	if m.missed() {
		failure.LostSince = m.lostSince().UTC()
	}
	rec.Failures = append(append([]store.Failure(nil), rec.Failures...), failure)
	if extra := len(rec.Failures) - mostFailures; extra > 0 {
		rec.Failures = rec.Failures[extra:]
	}
	if rec.Flapping == 0 && !d.flapsNow(*rec) {
		return false
	}
	if rec.Flapping == 0 && f.GiveUpTime > 0 {
		t := d.timer(f.GiveUpTime.D())
		rec.GiveUp = &t
	}
	delay := d.delay(sl.number, rec.Flapping)
	rec.Flapping++
	t := d.timer(delay)
	rec.Retry = &t
	sl.retry = d.now.Add(delay)
	if failures := f.Failures + rec.Flapping - 1; f.GiveUpAfter > 0 && failures > f.GiveUpAfter {
		d.giveSlotUp(sl, fmt.Sprintf("%d failures, more than flap.give_up_after %d", failures, f.GiveUpAfter))
	}
	d.blockFlapping(sl, m.task(store.WorkReplace))
	return true
}

// delay is how long a slot waits that was made to wait so often before: it doubles up to a limit,
// and some noise keeps slots from trying in step (FLAP-2).
func (d *draft) delay(number, before int) time.Duration {
	f := d.spec.Flap
	delay := f.MinDelay.D()
	for i := 0; i < before && delay < f.MaxDelay.D(); i++ {
		delay *= 2
	}
	delay = min(delay, f.MaxDelay.D())
	noise := time.Duration((2*share(d.g.Name, fmt.Sprint(number), fmt.Sprint(before)) - 1) * float64(f.Noise.D()))
	return max(time.Second, (delay + noise).Round(100*time.Millisecond))
}

// giveSlotUp leaves a slot as it is until an operator says otherwise (FLAP-3).
func (d *draft) giveSlotUp(sl *slot, why string) {
	sl.Record.Errored, sl.Record.Retry, sl.Record.GiveUp = why, nil, nil
	sl.retry, sl.giveUp = time.Time{}, time.Time{}
}

// giveUpFlapping gives up the slots that have flapped for too long, unless an instance in them is
// well.
func (d *draft) giveUpFlapping() {
	for _, sl := range d.order {
		if sl.Record.GiveUp == nil || sl.Record.Errored != "" || sl.touched || sl.well > 0 {
			continue
		}
		if d.now.Before(sl.giveUp) {
			d.wake(sl.giveUp)
			continue
		}
		d.giveSlotUp(sl, fmt.Sprintf("it has flapped for %s", d.spec.Flap.GiveUpTime))
		a := Action{
			Group: d.g.Name, Slot: &sl.number, Rule: "FLAP-3", What: "slot given up", Why: sl.Record.Errored,
			Counterfactual: counterfactual("FLAP-3", ""),
			Conditions:     d.specUnchanged(),
		}
		d.writeSlot(&a, sl)
		d.actions = append(d.actions, a)
	}
}

// waits reports whether a slot may not be filled or healed now, and records why.
func (d *draft) waits(sl *slot, what task) bool {
	if sl.Record.Errored != "" || sl.retry.After(d.now) {
		d.blockFlapping(sl, what)
		return true
	}
	return false
}

// waiting says in words that a slot is not filled now, and for how long.
func (sl *slot) waiting() string {
	if sl.Record.Errored != "" {
		return fmt.Sprintf("slot %d is given up: %s", sl.number, sl.Record.Errored)
	}
	if sl.Record.Retry == nil {
		return fmt.Sprintf("slot %d flaps", sl.number)
	}
	return fmt.Sprintf("slot %d flaps and waits %s", sl.number, sl.Record.Retry.For)
}

// flapsNow reports whether so many failures are recent that the slot flaps.
func (d *draft) flapsNow(rec store.Slot) bool {
	recent := 0
	for _, f := range rec.Failures {
		if age := d.now.Sub(f.At); age < d.spec.Flap.Window.D() && age > -time.Minute {
			recent++
		}
	}
	return recent >= d.spec.Flap.Failures
}

func (d *draft) blockFlapping(sl *slot, what task) {
	if sl.Record.Errored != "" {
		d.block("FLAP-3", what, store.BlockedByGivenUpSlot,
			store.BlockedFacts{Slot: sl.number, Text: sl.Record.Errored})
		return
	}
	d.wake(sl.retry)
	of := store.BlockedFacts{Slot: sl.number, Count: len(sl.Record.Failures)}
	if sl.Record.Retry != nil {
		of.For = sl.Record.Retry.For
	}
	d.block("FLAP-2", what, store.BlockedByFlapping, of)
}

// writeSlot adds the slot's record, which every change of who is in it compares and writes: two
// plans can never fill one slot twice.
func (d *draft) writeSlot(a *Action, sl *slot) {
	sl.touched = true
	a.Conditions = append(a.Conditions, store.At(sl.Key, sl.Modified))
	a.Writes = append(a.Writes, store.Put(sl.Key, store.Encode(sl.Record)))
}

// A restart goes stopping → starting → checking. Its level, its token and the boot before it are in
// the record, so that any leader can go on with it, and it is done once (SAFE-8): the agent reports
// the token of the last restart it carried out, and a machine that has restarted reports another
// boot.

// nextRestart is the level at which a failed member is restarted next: the workload first, where
// its agent runs one and can be told, then the machine; "" when both were tried and failed
// (HEAL-1).
func (d *draft) nextRestart(m *member) string {
	switch {
	case m.phase == store.Pending || m.phase == store.Creating || !m.Record.Managed:
		return ""
	case m.healed() && m.Record.Restart.Level == store.RestartMachine:
		return ""
	case m.healed(), !m.reachable():
		return store.RestartMachine
	default:
		return store.RestartWorkload
	}
}

// healed reports whether it was restarted because it had failed, and has not been healthy since.
func (m *member) healed() bool { return m.Record.Restart != nil && m.Record.Restart.Heals }

// reachable reports whether its agent runs a workload and can be told to restart it.
func (m *member) reachable() bool {
	return len(m.Record.Spec.Workload.Run) > 0 && m.Alive.Present() && m.Alive.Record.State == store.StreamOpen
}

// restart begins one. The caller has applied the budgets.
func (d *draft) restart(m *member, level, rule, what string, why store.Cause, heals bool, change func(*store.Instance)) *Action {
	rec := store.Restart{
		Level: level, Rule: rule, Token: d.unique(m.ID()), Boot: m.boot(), Listed: m.listedBoot(),
		At: d.now.UTC(), Heals: heals,
	}
	a := d.step(m, store.Stopping, rule, what, why, m.evidence(), func(r *store.Instance) {
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

// boot is the boot that its agent told of last; "" if none ever did.
func (m *member) boot() string {
	if m.Alive.Present() {
		return m.Alive.Record.BootID
	}
	return m.Report.Record.BootID
}

// listedBoot is its present boot as its provider tells boots apart; "" if the last List may tell of
// the one before, as it was begun before the agent was heard.
func (m *member) listedBoot() string {
	if m.Alive.Present() && m.Sighting.Begun.Before(m.StreamSince) {
		return ""
	}
	return m.Sighting.BootID
}

// stopped: the restart was carried out; the instance comes up again.
func (d *draft) stopped(m *member) {
	r := m.Record.Restart
	if r == nil {
		return
	}
	var why string
	switch {
	case r.Level == store.RestartWorkload && m.Alive.Present() && m.Report.Record.Restarted == r.Token:
		why = "its agent has restarted the workload"
	case r.Level == store.RestartMachine && m.Calls.Restarted == r.Token:
		why = "the provider has restarted it"
	case r.Boot != "" && m.Alive.Present() && m.Alive.Record.BootID != r.Boot:
		why = "another boot of it reports"
	case r.Level == store.RestartMachine && m.bootedAnew(r):
		why = "the provider lists another boot of it"
	default:
		return
	}
	d.step(m, store.Starting, r.Rule, "restarted", because(why), []string{streamSays(m.Instance)}, nil)
}

// started: the restarted instance has registered again.
func (d *draft) started(m *member) {
	r := m.Record.Restart
	if !m.Alive.Present() || m.Alive.Record.State != store.StreamOpen {
		return
	}
	if r != nil && r.Level == store.RestartMachine && r.Boot != "" && m.Alive.Record.BootID == r.Boot {
		return // it is still the boot before
	}
	rule := "HEAL-1"
	if r != nil {
		rule = r.Rule
	}
	a := d.step(m, store.Checking, rule, "back after its restart", because(fmt.Sprintf("after %s", d.since(m))),
		[]string{streamSays(m.Instance)}, nil)
	a.Conditions = append(a.Conditions, m.Alive.Unchanged())
}

// bootedAnew reports whether the provider lists another boot than the one that was to end.
func (m *member) bootedAnew(r *store.Restart) bool {
	return r.Listed != "" && m.Sighting.BootID != "" && m.Sighting.BootID != r.Listed
}

// mustRestart reports whether the provider has to be asked to restart a machine: again and again,
// but never once another boot of it reports or is listed. Where boots can be told apart in a List,
// there has to be one first: the leader before us may have asked.
func (m *member) mustRestart() bool {
	r := m.Record.Restart
	if m.phase != store.Stopping || r == nil || r.Level != store.RestartMachine || m.Calls.Restarted == r.Token ||
		m.Calls.Missing {
		return false
	}
	if m.bootedAnew(r) || r.Listed != "" && m.Sighting.Begun.IsZero() {
		return false
	}
	return !m.Alive.Present() || r.Boot == "" || m.Alive.Record.BootID == r.Boot
}

// restartAllowed reports whether a member may be taken down by a restart: within max_unavailable,
// but an instance that is down already takes nothing down (HEAL-3, HEAL-5).
func (d *draft) restartAllowed(m *member) bool {
	return !d.booted(m) || m.slot.up > 1 || d.unavailable() < d.spec.MaxUnavailableFor(d.spec.Budget.Heal, true)
}
