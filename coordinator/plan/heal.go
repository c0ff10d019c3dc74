package plan

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
)

// heal replaces what has failed and what an operator condemned, slot by slot, the dead first: they wait for no budget.
func (d *draft) heal() {
	slots := d.slotsInUse()
	for _, n := range slots {
		for _, m := range d.in(n) {
			switch {
			case m.dead():
				d.bury(m)
			case m.phase == store.Pending || m.phase == store.Creating:
				d.giveUp(m)
			}
		}
	}
	for _, n := range slots {
		d.healSlot(n)
	}
}

// bury removes a dead member at once, and in the same transaction records who takes its place (DET-4).
func (d *draft) bury(m *member) {
	sl := d.slot(m.Record.Slot)
	if m.touched || sl.touched {
		return
	}
	if d.made >= mostCreations {
		return // the rest on the next picture
	}
	left := d.spec.Heal.Policy == store.HealNone && m.Record.Condemned == nil
	if left && len(d.slotsInUse()) <= d.spec.Size { // in a surplus it goes all the same (REC-4)
		d.block("HEAL-1", "replacement of "+m.ID(), "heal.policy is none, and "+m.judgment.Why, "leasehold instance replace "+m.ID(), m.ID())
		return
	}
	flaps := d.fail(sl, m)
	alone := len(d.others(m, usable)) == 0
	needed := !left && len(d.filled()) < d.spec.Size
	a := d.retire(m, m.judgment.Rule, "deleting", m.judgment.Why, m.judgment.Evidence, m.proof(d.s.Keys)...)
	if alone && needed && !flaps {
		r, write := d.newMember(sl.number, m, "DET-4", "takes the place of "+m.ID()+", which is dead")
		a.What = "deleting; replacement " + r.ID() + " requested"
		a.Conditions = append(a.Conditions, store.Absent(r.Key))
		a.Writes = append(a.Writes, write)
	}
	d.writeSlot(a, sl)
}

// giveUp withdraws a creation that cannot succeed: the provider has refused it for good, fails on a template that is not wanted
// any more, or has failed for as long as DET-10 gives. It is no failure of the slot (HEAL-13).
func (d *draft) giveUp(m *member) {
	if m.Calls.NoRoom && m.phase == store.Creating && !m.touched && !m.Calls.Busy {
		d.moveZone(m)
	}
	if m.touched || m.Calls.Busy || m.Calls.Problem == "" {
		return
	}
	var why string
	switch due := m.PhaseStart.Add(m.patience()); {
	case m.Calls.Refused:
		why = "the provider refuses it: " + m.Calls.Problem
	case d.outdated(m):
		why = "the template has changed since it failed: " + m.Calls.Problem
	case m.phase == store.Creating && !d.now.Before(due):
		why = fmt.Sprintf("the provider did not make it within %s: %s", m.patience(), m.Calls.Problem)
	default:
		d.wake(due)
		return
	}
	if !d.roomToDelete() {
		d.block("HEAL-7", "withdrawal of "+m.ID(), "max_deleting is used up", "a deletion that is under way ends", m.ID())
		return
	}
	d.retire(m, "HEAL-13", "withdrawn", why, nil)
}

// patience is how long a creation may keep failing before the room that it takes goes to another.
func (m *member) patience() time.Duration {
	if limit := m.Record.Spec.MaxChecking.D(); limit > 0 {
		return limit
	}
	return m.Record.Spec.RegistrationTimeout.D()
}

// moveZone tries a creation in another zone when its own has no room: nothing was made there (REC-3).
func (d *draft) moveZone(m *member) {
	full, to := m.Record.Zone, d.zone()
	known := d.s.Full[m.Record.Spec.Provider]
	if !known[full].After(d.now) || known[to].After(d.now) {
		return
	}
	a := d.step(m, store.Creating, "REC-3", "tried in zone "+to, "zone "+full+" has no room", []string{m.Calls.Problem}, func(r *store.Instance) { r.Zone = to })
	a.Conditions = append(a.Conditions, d.common()...)
}

// healSlot decides for a slot with failed or condemned members, or with more than one.
func (d *draft) healSlot(n int) {
	sl := d.slot(n)
	var good, bad []*member
	for _, m := range d.bySlot[n] {
		if m.touched {
			return // decided on the next picture
		}
	}
	for _, m := range d.in(n) {
		switch {
		case m.dead() || !m.phase.Fills():
		case m.unwanted():
			bad = append(bad, m)
		default:
			good = append(good, m)
		}
	}
	switch {
	case len(good) > 0:
		d.settle(sl, good, bad)
	case len(bad) > 1:
		d.thinOut(sl, bad)
	case len(bad) == 1:
		d.replace(sl, bad[0])
	}
}

// thinOut leaves one of several members that failed or are condemned: a replacement that failed must not take the room of
// the next one (HEAL-13). One that has fully booted stays if there is one (HEAL-5), else the oldest.
func (d *draft) thinOut(sl *slot, bad []*member) {
	keep := bad[0]
	for _, m := range bad {
		if m.phase == store.Running {
			keep = m
			break
		}
	}
	for _, m := range bad {
		switch {
		case m == keep:
			continue
		case sl.touched:
			return // the rest on the next picture
		case !d.roomToDelete():
			d.block("HEAL-7", "removal of "+m.ID(), "max_deleting is used up", "a deletion that is under way ends", m.ID())
			return
		}
		rule, why := m.grounds("HEAL-13")
		d.fail(sl, m)
		a := d.retire(m, rule, "deleting", why+"; "+keep.ID()+" keeps the slot until there is a better one", m.judgment.Evidence,
			append(m.proof(d.s.Keys), keep.Unchanged())...)
		d.writeSlot(a, sl)
	}
}

// grounds are the rule and the reason for which a member has to go: the given rule if it failed, or an order.
func (m *member) grounds(rule string) (string, string) {
	if c := m.Record.Condemned; c != nil {
		return "REC-16", c.Why
	}
	return rule, m.judgment.Why
}

// settle keeps one healthy member of a slot and lets the others go: HEAL-2, HEAL-6.
func (d *draft) settle(sl *slot, good, bad []*member) {
	keep := d.keeper(sl, good)
	if keep == nil {
		for _, m := range bad {
			if m.Record.Condemned != nil && m.Record.Condemned.Now {
				d.release(m, good[0], "REC-16", "deleting", m.Record.Condemned.Why)
				continue
			}
			d.block("HEAL-2", "removal of "+m.ID(), "its replacement "+good[0].ID()+" is "+string(good[0].phase), good[0].ID()+" passes all checks", m.ID())
		}
		return
	}
	for _, m := range bad {
		rule, why := m.grounds("HEAL-2")
		d.release(m, keep, rule, "deleting", why+"; "+keep.ID()+" is healthy in its place")
	}
	for _, m := range good {
		switch {
		case m == keep || m.judgment.Verdict == store.Suspect:
			continue // a suspect is decided when it is known what it is
		case older(keep, m) && !m.healthy() && (d.flapsNow(sl.Record) || d.outdated(keep) && !d.outdated(m)):
			d.block("DET-15", "withdrawal of "+m.ID(), keep.ID()+" works again, but was lost too often or is outdated", m.ID()+" passes all checks", m.ID())
			continue
		}
		switch {
		case older(keep, m):
			d.release(m, keep, "HEAL-6", "withdrawn", keep.ID()+" is healthy, one of them is enough")
		case d.outdated(m) && !d.outdated(keep):
			d.release(m, keep, "HEAL-6", "deleting", "it is outdated, and "+keep.ID()+" is healthy in its place")
		case !m.healthy():
			d.release(m, keep, "HEAL-2", "deleting", "it is not known to be healthy, and "+keep.ID()+" is healthy in its place")
		default:
			d.release(m, keep, "DET-15", "deleting", "it was lost too often, and "+keep.ID()+" is healthy in its place")
		}
	}
}

// keeper is the member that keeps the slot, if one is healthy: the oldest, but the youngest once the slot's
// instances were lost too often (DET-15), and no outdated one while another is not (HEAL-6).
func (d *draft) keeper(sl *slot, good []*member) *member {
	var keep *member
	for _, m := range good {
		switch {
		case !m.healthy():
		case keep == nil, d.outdated(keep) && !d.outdated(m):
			keep = m
		case d.flapsNow(sl.Record) && d.outdated(keep) == d.outdated(m):
			keep = m
		}
	}
	return keep
}

// outdated says that a member was made from another template than the one that is wanted.
func (d *draft) outdated(m *member) bool {
	return m.Record.Template != d.spec.InstanceSpec().TemplateHash()
}

// release retires a member whose place is kept by another, who is part of the evidence.
func (d *draft) release(m, keep *member, rule, what, why string) {
	if m.touched {
		return
	}
	if !d.roomToDelete() {
		d.block("HEAL-7", "removal of "+m.ID(), "max_deleting is used up", "a deletion that is under way ends", m.ID())
		return
	}
	evidence := append(append([]string(nil), m.judgment.Evidence...), keep.ID()+": "+keep.judgment.Why)
	also := append(m.proof(d.s.Keys), keep.Unchanged(), store.At(d.s.Keys.Alive(keep.ID()), keep.Alive.Modified))
	if keep.Report.Present() {
		also = append(also, keep.Report.Unchanged())
	}
	d.retire(m, rule, what, why, evidence, also...)
}

// replace begins the healing of a slot whose only member has failed or is condemned.
func (d *draft) replace(sl *slot, m *member) {
	if sl.touched {
		return
	}
	ordered := m.Record.Condemned != nil
	if !ordered && d.spec.Heal.Policy == store.HealNone {
		d.block("HEAL-1", "replacement of "+m.ID(), "heal.policy is none, and "+m.judgment.Why, "leasehold instance replace "+m.ID(), m.ID())
		return
	}
	if !ordered && sl.retry.After(d.now) {
		d.blockFlapping(sl, "replacement of "+m.ID(), m.ID())
		return
	}
	removeFirst, ok := d.turn(m)
	if !ok {
		return
	}
	rule, why := m.grounds("HEAL-2")
	if !ordered && d.fail(sl, m) {
		a := d.step(m, m.phase, "FLAP-1", "slot is flapping", why, m.judgment.Evidence, func(r *store.Instance) { r.Counted = true })
		a.Conditions = append(a.Conditions, m.proof(d.s.Keys)...)
		d.writeSlot(a, sl)
		return
	}
	var a *Action
	if removeFirst {
		a = d.retire(m, rule, "", why, m.judgment.Evidence, m.proof(d.s.Keys)...)
	} else {
		a = d.step(m, m.phase, rule, "", why, m.judgment.Evidence, func(r *store.Instance) { r.Counted = !ordered })
		a.Conditions = append(append(a.Conditions, d.common()...), m.proof(d.s.Keys)...)
	}
	r, write := d.newMember(sl.number, m, rule, "takes the place of "+m.ID()+": "+why)
	a.What = "replacement " + r.ID() + " requested"
	if removeFirst {
		a.What = "deleting; " + a.What
	}
	a.Conditions = append(a.Conditions, store.Absent(r.Key))
	a.Writes = append(a.Writes, write)
	d.writeSlot(a, sl)
}

// turn applies the budgets: whether it is a member's turn to be replaced and, if so, whether it is removed first.
func (d *draft) turn(m *member) (removeFirst, ok bool) {
	b, most, now := d.spec.Budget, d.spec.MaxUnavailable(false), m.Record.Condemned != nil && m.Record.Condemned.Now
	what := "replacement of " + m.ID()
	if !d.roomToCreate() || d.made >= mostCreations {
		d.block("HEAL-7", what, "max_creating is used up", "one that is coming up is there", m.ID())
		return false, false
	}
	if !now && d.expansion() < b.MaxExpansion {
		return false, true
	}
	// Who never booted is unavailable already: to remove it takes nobody down (HEAL-5). Else several of them would use the
	// budget up that their own replacement needs.
	switch {
	case !now && (most == 0 || m.phase == store.Running && d.unavailable() >= most):
		d.block("HEAL-2", what, fmt.Sprintf("max_expansion %d and max_unavailable %d are used up", b.MaxExpansion, most), "another replacement is complete", m.ID())
		return false, false
	case !d.roomToDelete():
		d.block("HEAL-7", what, "max_deleting is used up", "a deletion that is under way ends", m.ID())
		return false, false
	}
	return true, true
}

// proof are the keys on which the verdict of a member rests, as they were seen (SAFE-4).
func (m *member) proof(keys store.Keys) []store.Condition {
	out := []store.Condition{store.At(keys.Alive(m.ID()), m.Alive.Modified)}
	if v := m.judgment.Verdict; v == store.Unhealthy || v == store.Stuck {
		out = append(out, store.At(keys.Report(m.ID()), m.Report.Modified))
	}
	return out
}

// usable says that a member fills its slot and nothing speaks against it.
func usable(m *member) bool { return m.fills() && !m.unwanted() }

// others lists the members in the same slot for which a property holds.
func (d *draft) others(m *member, property func(*member) bool) []*member {
	var out []*member
	for _, o := range d.in(m.Record.Slot) {
		if o != m && property(o) {
			out = append(out, o)
		}
	}
	return out
}

// fail counts a member's failure against its slot, once, and says whether the slot now flaps and has to wait
// (FLAP-1, FLAP-2). The caller writes the slot.
func (d *draft) fail(sl *slot, m *member) (wait bool) {
	if m.Record.Counted || m.Record.Condemned != nil {
		return sl.retry.After(d.now)
	}
	f := d.spec.Flap
	rec := &sl.Record
	rec.Failures = append(append([]store.Failure(nil), rec.Failures...), store.Failure{
		At: d.now.UTC(), Instance: m.ID(), Verdict: m.judgment.Verdict, Why: m.judgment.Why,
	})
	if extra := len(rec.Failures) - mostFailures; extra > 0 {
		rec.Failures = rec.Failures[extra:]
	}
	if rec.Flapping == 0 && !d.flapsNow(*rec) {
		return false
	}
	delay := f.MinDelay.D()
	for i := 0; i < rec.Flapping && delay < f.MaxDelay.D(); i++ {
		delay *= 2
	}
	delay = min(delay, f.MaxDelay.D())
	rec.Flapping++
	rec.Retry = &store.Timer{Start: d.now.UTC(), For: store.Duration(delay)}
	sl.retry = d.now.Add(delay)
	d.blockFlapping(sl, "replacement of "+m.ID(), m.ID())
	return true
}

// mostFailures is how many failures a slot remembers: as many as flap.failures may demand.
const mostFailures = 100

// flapsNow says whether so many failures are recent that the slot flaps.
func (d *draft) flapsNow(rec store.Slot) bool {
	recent := 0
	for _, f := range rec.Failures {
		if age := d.now.Sub(f.At); age < d.spec.Flap.Window.D() && age > -time.Minute {
			recent++
		}
	}
	return recent >= d.spec.Flap.Failures
}

func (d *draft) blockFlapping(sl *slot, what, instance string) {
	d.wake(sl.retry)
	d.block("FLAP-2", what, fmt.Sprintf("slot %d flaps: %d failures", sl.number, len(sl.Record.Failures)), "its wait of "+sl.Record.Retry.For.String()+" is over", instance)
}

// writeSlot adds the slot's record, which every change of who is in it compares and writes: two plans can
// never fill one slot twice.
func (d *draft) writeSlot(a *Action, sl *slot) {
	sl.touched = true
	a.Conditions = append(a.Conditions, store.At(sl.Key, sl.Modified))
	a.Writes = append(a.Writes, store.Put(sl.Key, store.Encode(sl.Record)))
}
