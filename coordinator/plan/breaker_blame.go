package plan

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// minDoubt is for how long the new template must fail beside the last good one at least.
const minDoubt = 30 * time.Second

// blameTemplate stops a roll if the new template is why the breaker is open (ROLL-5): so many
// instances of it as open the breaker fail their checks where instances of the last good template
// work. That must last longer than the checks of the good template need to fail too: what all
// instances depend on may break, and the new ones may notice that first.
func (d *healing) blameTemplate() {
	b, r, good := d.breaker, d.roll.rollout, d.g.Status.Record.LastGood
	if b == nil {
		return
	}
	off := r == nil || r.Blamed != "" || r.Retried || good == nil || good.Template == d.hash || !d.mayAct()
	// what failed before the roll began is no reason against it: it may be the fix
	if off || b.Since.Before(r.Since) || d.storms.storm != nil || d.now.Before(d.s.GraceEnd) {
		b.Doubt = nil
		return
	}
	count := d.failsBeside(good.Template)
	if count < breakerMin || count <= b.Limit {
		b.Doubt = nil
		return
	}
	known := d.g.Due
	if wait := max(minDoubt, 2*slowestFailure(good.Spec.AllChecks())); b.Doubt == nil || b.Doubt.For.D() != wait {
		t := d.timer(wait)
		b.Doubt, known = &t, nil
	}
	if due := d.ends(known, store.TimerBlame, b.Doubt); d.now.Before(due) {
		d.wake(due)
		return
	}
	why := store.Cause{
		Kind: store.CauseTemplateBreaks, Name: d.hash, Other: good.Template, Count: count, Limit: b.Limit, For: b.Doubt.For,
	}
	b.Doubt = nil
	r.Failed, r.BlamedCause, r.Blamed = true, why, reason.Short(why)
	d.tell("ROLL-5", effect(store.EffectRollStopped), why)
}

// failsBeside counts the slots in which an instance of the wanted template fails its checks, in
// zones where an instance of the good template works. It is 0 if any instance of another template
// fails its checks, is suspect or lost: then the cause may be something that all of them depend on.
func (d *healing) failsBeside(good string) int {
	works, fails := map[string]bool{}, map[string]int{}
	for _, sl := range d.order {
		for _, m := range sl.members {
			switch wanted := m.Record.Template == d.hash; {
			case m.Record.Drilled(d.now) || m.gone():
			case !wanted && (m.failsChecks() || m.phase == store.Running && !m.working()):
				return 0
			case m.saysItFails() && !m.Record.Ailing && sl.well == 0 && !m.updating():
				fails[m.Record.Zone]++
			case m.Record.Template == good && m.healthy():
				works[m.Record.Zone] = true
			}
		}
	}
	count := 0
	for zone, n := range fails {
		if works[zone] {
			count += n
		}
	}
	return count
}

// saysItFails reports whether a member's own report shows that it fails. A restart that the
// provider does not carry out, and an agent that reports nothing, say nothing about a template.
func (m *member) saysItFails() bool {
	return m.failsChecks() && (m.phase == store.Running || m.phase == store.Checking) && reportIsCurrent(m.Instance) &&
		!m.Report.Record.Healthy
}

// slowestFailure is how long checks take at most to notice that what they check has broken.
func slowestFailure(checks []store.Check) (slowest time.Duration) {
	for i := range checks {
		c := &checks[i]
		slowest = max(slowest, time.Duration(c.UnhealthyThreshold)*c.Interval.D()+c.Timeout.D())
	}
	return slowest
}
