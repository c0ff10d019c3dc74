package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// A roll may have stages: a few canaries first, which then bake (ROLL-5), and one zone after the
// other (ROLL-8). A rollback has no stages (rollback.go).

// stages divides a roll into stages.
type stages struct {
	*draft
	rests    bool // the roll waits for time or a promotion, and has nothing else to do
	promotes bool // this plan promotes the canaries, so the others wait for the next plan
}

// canaries returns how many slots a roll that begins now updates first.
func (d *roll) canaries() int {
	if d.spec.Rollout.Strategy != store.StrategyProactive || d.count.strange == 0 || d.toGood() {
		return 0
	}
	return d.spec.Canaries()
}

// testsCanaries reports whether only canaries may have the new template.
func (d *stages) testsCanaries() bool {
	return d.roll.rollout != nil && d.roll.rollout.Canary > 0 && d.roll.rollout.Promoted == ""
}

func (d *stages) isCanary(number int) bool {
	return d.testsCanaries() && slices.Contains(d.roll.rollout.Canaries, number)
}

// reach returns how many slots may have the new template.
func (d *stages) reach() int {
	if d.testsCanaries() {
		return d.roll.rollout.Canary
	}
	return d.spec.Size
}

// baked reports whether a member has been healthy for rollout.bake.
func (f *fleet) baked(m *member) bool {
	if f.spec.Rollout.Bake == 0 {
		return true
	}
	since := m.HealthySince
	if since.Before(m.PhaseStart) {
		since = m.PhaseStart
	}
	due := f.due(since.Add(f.spec.Rollout.Bake.D()))
	f.wake(due)
	return !f.now.Before(due)
}

// follow moves the roll to its next stage once the present one is good.
func (d *stages) follow() {
	r := d.roll.rollout
	r.GraceUntil = time.Time{}
	if d.spec.Rollout.Strategy != store.StrategyProactive || r.Blamed != "" {
		r.Rests = nil
		return
	}
	if d.testsCanaries() {
		d.followCanaries(r)
		return
	}
	if d.spec.Rollout.Order != store.OrderZone || d.roll.goesBack() {
		r.Zone, r.Rests = "", nil
		return
	}
	d.followZones(r)
}

// followCanaries promotes the canaries once all of them have been healthy long enough. The first
// instance of the template in a slot makes that slot a canary, whatever happens to the instance
// later.
func (d *stages) followCanaries(r *store.Rollout) {
	r.Canaries = slices.DeleteFunc(slices.Clone(r.Canaries), func(n int) bool { return d.slots.get(n) == nil })
	done := 0
	for _, sl := range d.order {
		has := func(m *member) bool { return !m.gone() && m.Record.Template == r.Template }
		if slices.ContainsFunc(sl.members, has) && !slices.Contains(r.Canaries, sl.number) && len(r.Canaries) < r.Canary {
			r.Canaries = append(r.Canaries, sl.number)
		}
		upToDate := func(m *member) bool { return has(m) && d.upToDate(m) }
		if slices.Contains(r.Canaries, sl.number) && slices.ContainsFunc(sl.members, upToDate) {
			done++
		}
	}
	slices.Sort(r.Canaries)
	if done < min(r.Canary, d.spec.Size) {
		r.Rests = nil
		return
	}
	wait, byOrder := d.spec.Rollout.CanaryWait()
	if byOrder {
		d.rests, r.Rests = true, nil
		return
	}
	rests := r.Rests
	if d.rests = !d.waitOut(wait); !d.rests && !d.analysis.passes(d.ends(d.g.Due, store.TimerRests, rests)) {
		d.rests, r.Rests = true, rests // the wait does not begin again
		d.analysis.holdUp()
	}
	if !d.rests {
		d.promoted(store.Cause{
			Kind: store.CauseCanariesHealthy, Count: done, Name: r.Template, For: store.Duration(wait),
		})
	}
}

// waitOut begins a wait, or ends the one that has begun once it is over, which it reports.
func (d *stages) waitOut(wait time.Duration) bool {
	r, known := d.roll.rollout, d.g.Due
	if r.Rests == nil || r.Rests.For.D() != wait {
		t := d.timer(wait)
		r.Rests, known = &t, nil
	}
	if due := d.ends(known, store.TimerRests, r.Rests); d.now.Before(due) {
		if due.Equal(d.s.GraceEnd) {
			r.GraceUntil = due.UTC().Round(0) // as it is read back
		}
		d.wake(due)
		return false
	}
	r.Rests = nil
	return true
}

// upToDate reports whether a member works with the wanted configuration and has confirmed it.
func (f *fleet) upToDate(m *member) bool {
	return m.phase == store.Finished || f.proven(m) && !f.outdated(m) && !m.updating()
}

// followZones moves to the next zone with an outdated instance. Protected instances delay no
// zone.
func (d *stages) followZones(r *store.Rollout) {
	next, here := "", false
	for _, sl := range d.order {
		for _, m := range sl.members {
			switch zone := m.Record.Zone; {
			case m.gone() || m.phase == store.Draining || m.phase == store.Finished:
			case d.outdated(m) && m.Record.Protected == "":
				here = here || zone == r.Zone
				if next == "" || zone < next {
					next = zone
				}
			case zone == r.Zone && !d.outdated(m) && !d.upToDate(m):
				here = true
			}
		}
	}
	switch {
	case here || next == "" && r.Zone == "":
		r.Rests = nil
	case next == "": // the last zone is done
		r.Rests = nil
	case r.Zone == "" || d.spec.Rollout.Bake == 0 || d.waitOut(d.spec.Rollout.Bake.D()):
		what := store.Effect{Kind: store.EffectRollNextZone, Zone: next}
		if r.Zone == "" {
			what.Kind = store.EffectRollZone
		}
		r.Zone = next
		d.tell("ROLL-8", what, of(store.CauseZonesInOrder))
		d.roll.advance()
	default:
		d.rests = true
	}
}

// staged returns the outdated members of the present stage, and records what the others wait for.
func (d *stages) staged(list []*member) []*member {
	r := d.roll.rollout
	switch {
	case len(list) == 0 || d.spec.Rollout.Strategy != store.StrategyProactive:
		return list
	case d.promotes:
		return nil // the roll continues once the promotion is written
	case d.testsCanaries():
		return d.pickCanaries(list)
	case r.Zone == "":
		return list
	case r.Rests != nil:
		d.block("ROLL-8", task{work: store.WorkRoll}, store.BlockedByBake,
			store.BlockedFacts{Zone: r.Zone, For: d.spec.Rollout.Bake, Opens: r.GraceUntil})
		return nil
	default:
		return slices.DeleteFunc(list, func(m *member) bool { return m.Record.Zone != r.Zone })
	}
}

// pickCanaries returns the members in canary slots, and chooses new canaries: one in each zone
// before a second in any.
func (d *stages) pickCanaries(list []*member) (picked []*member) {
	r, in := d.roll.rollout, map[string]int{}
	var rest []*member
	for _, m := range list {
		if slices.Contains(r.Canaries, m.Record.Slot) {
			picked = append(picked, m)
		} else {
			rest = append(rest, m)
		}
	}
	for _, n := range r.Canaries {
		if sl := d.slots.get(n); sl != nil && len(sl.members) > 0 {
			in[sl.members[0].Record.Zone]++
		}
	}
	for range min(r.Canary-len(r.Canaries), len(rest)) {
		m := slices.MinFunc(rest, func(a, b *member) int { return cmp.Compare(in[a.Record.Zone], in[b.Record.Zone]) })
		in[m.Record.Zone]++
		picked = append(picked, m)
		rest = slices.DeleteFunc(rest, func(o *member) bool { return o == m })
	}
	if len(picked) == 0 {
		of := store.BlockedFacts{Limit: r.Canary, Opens: r.GraceUntil}
		wait, byOrder := d.spec.Rollout.CanaryWait()
		if d.rests {
			of.Count = r.Canary
		} else {
			of.Count = min(d.roll.count.done, r.Canary-1)
		}
		if !byOrder {
			of.For = store.Duration(wait)
		}
		d.block("ROLL-5", task{work: store.WorkRoll}, store.BlockedByCanary, of)
	}
	return picked
}

// becomesCanary records a slot that the roll has reached.
func (d *stages) becomesCanary(m *member) {
	if r := d.roll.rollout; d.testsCanaries() && m.touched && !slices.Contains(r.Canaries, m.Record.Slot) {
		r.Canaries = append(slices.Clone(r.Canaries), m.Record.Slot)
		slices.Sort(r.Canaries)
	}
}

// promoted continues the roll after its canaries.
func (d *stages) promoted(why store.Cause) {
	d.roll.rollout.PromotedCause, d.roll.rollout.Promoted = why, reason.Short(why)
	d.tell("ROLL-5", effect(store.EffectPromoted), why)
	d.promotes = true
	d.roll.advance()
}

// promote continues a roll on an operator's order.
func (d *stages) promote(r store.Versioned[store.Request]) {
	if !d.testsCanaries() {
		d.actions = append(d.actions, refuse(r, "no roll of it has canaries that are not promoted yet"))
		return
	}
	if d.roll.blamed() {
		d.actions = append(d.actions, refuse(r, "its roll has stopped: "+d.roll.rollout.Blamed+
			"; leasehold group retry "+d.g.Name+" continues it"))
		return
	}
	d.roll.rollout.Rests, d.roll.rollout.GraceUntil, d.rests = nil, time.Time{}, false
	d.promoted(orderedBy(r.Record.By))
	d.orders.settled = append(d.orders.settled, r)
}
