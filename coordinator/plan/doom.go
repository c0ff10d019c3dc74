package plan

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// doom is why an instance will end in any case. An empty rule means that it will not.
type doom struct {
	rule  string
	cause store.Cause
	by    time.Time // when it ends, if that is known
}

// doomOf reads it from the record, or from the evacuation of its zone, which is an order for all
// that is there (DRAIN-3).
func (v *view) doomOf(m *member) doom {
	if r := m.Record.Doomed; r != nil {
		return doom{rule: r.Rule, cause: reason.Known(r.Cause, r.Why), by: v.ends(m.Due, store.TimerDoomed, r.Deadline)}
	}
	if gone := v.s.Shard.Record.Evacuated; len(gone) > 0 {
		if e, yes := gone[m.Record.Zone]; yes {
			return doom{
				rule: "DRAIN-3", cause: store.Cause{Kind: store.CauseEvacuated, Name: m.Record.Zone, By: e.By},
			}
		}
	}
	return doom{}
}

// noticed reports whether the provider has said that it will take the machine away: its replacement
// waits for no budget (SPOT-2).
func (m *member) noticed() bool { return m.Record.Doomed != nil && m.Record.Doomed.Rule == "SPOT-2" }

// hear records a notice, or an agent's word that its machine is to be emptied: what said so may be
// gone in a moment. A provider's notice is recorded over an evacuation too, since it leaves less
// time.
func (d *draft) hear(m *member) {
	if m.touched || m.noticed() || !m.phase.Registered() && m.phase != store.Booting {
		return
	}
	n := m.Report.Record.Notice
	if !m.Alive.Present() || !reportIsCurrent(m.Instance) {
		n = nil
	}
	switch {
	case n != nil && n.Kind != store.NoticeEvacuating:
		why := store.Cause{Kind: store.CauseNotice, Text: n.Why}
		rec := store.Doom{Rule: "SPOT-2", Why: reason.Short(why), Cause: why, At: d.now.UTC()}
		if n.In > 0 {
			t := d.timer(n.In.D())
			rec.Deadline = &t
		}
		a := d.step(m, m.phase, "SPOT-2", "doomed", why,
			[]store.Fact{reportIs(m.Instance), {Kind: store.FactNotice, Name: n.Kind}},
			func(r *store.Instance) { r.Doomed = &rec })
		a.Conditions = append(a.Conditions, m.Report.Unchanged())
	case m.Record.Doomed != nil:
	case n != nil:
		a := d.evacuated(m, n.Why, reportIs(m.Instance))
		a.Conditions = append(a.Conditions, m.Report.Unchanged())
	case m.Alive.Present() && m.Alive.Record.State == store.StreamLeft &&
		m.Alive.Record.Goodbye == store.GoodbyeEvacuating:
		a := d.evacuated(m, m.Alive.Record.Why, streamSays(m.Instance))
		a.Conditions = append(a.Conditions, m.Alive.Unchanged())
	}
}

// evacuated records that a member's machine is to be emptied (DRAIN-3).
func (d *draft) evacuated(m *member, text string, on store.Fact) *Action {
	why := store.Cause{Kind: store.CauseEmptied, Text: text}
	return d.step(m, m.phase, "DRAIN-3", "doomed", why, []store.Fact{on}, func(r *store.Instance) {
		r.Doomed = &store.Doom{Rule: "DRAIN-3", Why: reason.Short(why), Cause: why, At: d.now.UTC()}
	})
}

// saveNoticed replaces and drains at once what a notice has doomed: there is nothing to be gained
// by waiting (SPOT-2).
func (d *draft) saveNoticed() {
	for _, sl := range d.order {
		for _, m := range sl.members {
			if !m.noticed() || m.touched || sl.touched || m.dead() || !m.phase.Fills() || m.phase == store.Pending ||
				m.phase == store.Creating {
				continue
			}
			if left := d.doomedAsMade(m); left > 0 {
				d.wake(d.now.Add(left))
				d.block("SPOT-2", m.task(store.WorkReplace), store.BlockedByNewDoom,
					store.BlockedFacts{Cause: m.doom.cause, Other: m.Record.Replaces, For: d.spec.Flap.MinDelay})
				continue
			}
			if d.made >= mostCreations {
				return
			}
			needed := len(d.others(m, usable)) == 0 && d.counts.filled <= d.spec.Size && len(d.zones()) > 0
			why := motive{store.PurposeNotice, "SPOT-2", m.doom.cause}
			a := d.retire(m, why, "deleting", m.facts(), m.proof(d.s.Keys)...)
			switch {
			case needed && d.overLimit(true) != nil:
				a.What += "; its slot is filled when there is room for it"
				sl.Record.Vacated = &store.Vacated{Instance: m.ID(), Purpose: why.purpose}
			case needed:
				r, write := d.newMember(sl, m.ID(), why.placed(m.ID()))
				a.What += "; replacement " + r.ID() + " requested"
				a.Replacement = r.ID()
				d.madeFrom(a, &r.Record)
				a.Conditions = append(a.Conditions, store.Absent(r.Key))
				a.Writes = append(a.Writes, write)
			}
			d.writeSlot(a, sl)
		}
	}
}

// asMade is how soon after its agent's start a notice is seen that was there before the machine
// was.
const asMade = 10 * time.Second

// doomedAsMade returns how long to wait with replacing a member that was doomed by a notice as soon
// as it existed: until it is flap.min_delay old. Notices do not count as failures of a slot
// (FLAP-1). So without this wait, a notice that every machine gets, such as a shared file, would
// have machines made and given up as fast as they come. A member that ends earlier is replaced
// then.
func (d *draft) doomedAsMade(m *member) time.Duration {
	age, r := d.now.Sub(m.Record.Created), &m.Report.Record
	if !m.noticed() || m.Record.Condemned != nil || m.Record.Replaces == "" || age < 0 {
		return 0
	}
	if r.Notice == nil || r.Started.IsZero() || r.Notice.At.Sub(r.Started) >= asMade { // both by its own clock
		return 0
	}
	return max(0, d.spec.Flap.MinDelay.D()-age)
}
