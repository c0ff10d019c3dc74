package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// drillAhead is how far in the future the recorded time of the last drill may lie. If clocks are
// corrected by up to this much, no drill repeats; a time further ahead was recorded by a wrong
// clock.
const drillAhead = 5 * time.Minute

// bySchedule is the operator's name that scheduled drills use.
const bySchedule = "schedule"

// follow begins a scheduled drill when its time comes, or skips it (DAY-6). The mark in the
// instances' records comes first; the status records the time once a mark exists. So a leader that
// dies in between neither repeats nor forgets a drill. A late drill is skipped.
func (d *drills) follow() {
	if d.spec == nil || len(d.spec.Drills) == 0 {
		return
	}
	old := &d.g.Status.Record
	d.due = old.DrillDue
	d.wake(d.spec.NextDrill(d.now))
	due, spec := d.spec.DrillAt(d.now)
	switch {
	case due.IsZero() || due.Equal(old.DrillDue):
		return
	case old.DrillDue.IsZero() || old.AcceptedRevision != d.acceptedRevision:
		d.due = due // a schedule begins with the next time
		return
	case old.DrillDue.After(d.now.Add(drillAhead)):
		d.due = due // otherwise no drill would begin until then
		d.tell("DAY-6", effect(store.EffectDrillsGoOn), store.Cause{
			Text: "the last one is noted for " + old.DrillDue.Format(time.RFC3339) + ", by a clock that was wrong",
		})
		return
	case due.Before(old.DrillDue):
		return // the clock was put back a little
	}
	mark := store.Drill{
		Request: bySchedule + "-" + due.Format("20060102T1504"), By: bySchedule, Kind: spec.Of(),
	}
	if slices.ContainsFunc(d.members, func(m *member) bool {
		return m.Record.Drill != nil && m.Record.Drill.Request == mark.Request
	}) {
		d.done(due)
		return
	}
	members := d.inZone(spec.Zone)
	if spec.Zone == "" {
		members = d.oldest()
	}
	why := d.notNow(due)
	if why == "" {
		why = d.cannot(mark.Kind, members)
	}
	if why == "" {
		d.cause(mark, spec.Zone, members)
		return
	}
	d.tell("DAY-6", effect(store.EffectDrillLeftOut), store.Cause{Text: why})
	d.done(due)
}

// done records the time of a drill that has begun or was left out. Others that come at the same
// time are left out: two could end more than the group survives.
func (d *drills) done(due time.Time) {
	d.due = due
	for i, other := range d.spec.DrillsAt(due) {
		if i == 0 {
			continue
		}
		kind := cmp.Or(other.Kind, store.DrillKinds[0])
		d.tell("DAY-6", effect(store.EffectDrillLeftOut), store.Cause{
			Text: "the " + kind + " drill comes at the same time as one that is earlier in the list",
		})
	}
}

// notNow returns why no scheduled drill may begin now, whatever the group could survive; "" if one
// may.
func (d *drills) notNow(due time.Time) string {
	switch {
	case !d.now.Before(due.Add(store.DrillBegins)):
		return "its time has passed"
	case !d.mayAct():
		return "nothing is done in the group now: it is paused, or the shard is on hold"
	case d.s.ClocksApart >= ClocksApart:
		return "the clocks of the coordinators differ"
	case d.windows.blocker(store.PlannedDrill) != nil:
		return "no window allows it now, or there is a freeze"
	default:
		return ""
	}
}

// oldest returns the running instance that has filled its slot for the longest time.
func (f *fleet) oldest() []*member {
	var oldest *member
	for _, m := range f.members {
		if m.Record.Managed && m.phase == store.Running && (oldest == nil || older(m, oldest)) {
			oldest = m
		}
	}
	if oldest == nil {
		return nil
	}
	return []*member{oldest}
}
