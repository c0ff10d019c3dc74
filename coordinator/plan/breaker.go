package plan

import (
	"slices"

	"github.com/leasehold/leasehold/store"
)

// breakerMin is how many instances must fail at least: in a small group, one failure is a large
// share (ROLL-7).
const breakerMin = 3

// failsChecks reports whether a member failed only by the checks that its agent reports: its
// machine exists, and another machine may fail in the same way.
func (m *member) failsChecks() bool {
	return m.judgment.Verdict == store.Unhealthy || m.judgment.Verdict == store.Stuck && m.phase.Registered()
}

// followBreaker opens the breaker while so many instances fail their checks that an external cause
// is likely, and chooses one to heal as a probe (ROLL-7). It counts slots without a working
// instance, except those that a drill has emptied (DAY-6). The slot of a probe counts until an
// instance in it is healthy: a probe that is being restarted or replaced has proved nothing, and
// must not close the breaker.
func (d *healing) followBreaker() {
	if d.spec == nil || d.spec.Heal.MaxUnhealthy == nil {
		return
	}
	old := d.g.Status.Record.Breaker
	count, most := 0, d.spec.Heal.MaxUnhealthy.Down(d.spec.Size)
	var oldest *member
	var probed *int // the slot of the last probe, while no instance in it is healthy
	for _, sl := range d.order {
		if sl.well > 0 {
			continue
		}
		if old != nil && old.ProbeSlot != nil && *old.ProbeSlot == sl.number {
			probed = old.ProbeSlot
			if !slices.ContainsFunc(sl.members, func(m *member) bool { return m.failsChecks() && m.phase.Fills() }) {
				count++ // its outcome is open
				continue
			}
		}
		for _, m := range sl.members {
			if m.failsChecks() && m.phase.Fills() && !m.Record.Drilled(d.now) {
				if count++; len(sl.members) == 1 && (oldest == nil || older(m, oldest)) && (old == nil || m.ID() != old.Probe) {
					oldest = m
				}
				break
			}
		}
	}
	if count < breakerMin || count <= most {
		if old != nil {
			d.tell("ROLL-7", effect(store.EffectBreakerClosed),
				store.Cause{Kind: store.CauseManyFail, Count: count, Limit: most})
		}
		return
	}
	b, known := store.Breaker{Since: d.now.UTC()}, d.g.Due
	if old != nil {
		b = *old
	} else {
		d.tell("ROLL-7", effect(store.EffectBreakerOpened),
			store.Cause{Kind: store.CauseManyFail, Count: count, Limit: most})
	}
	b.Count, b.Limit, b.ProbeSlot = count, most, probed
	d.breaker = &b
	if after := d.spec.Storm.ProbeAfter.D(); after == 0 {
		b.NextProbe = nil
	} else if b.NextProbe == nil || b.NextProbe.For.D() != after {
		t := d.timer(after)
		b.NextProbe, known = &t, nil
	}
	if b.NextProbe == nil {
		return
	}
	if due := d.ends(known, store.TimerBreaker, b.NextProbe); d.now.Before(due) {
		d.wake(due)
		return
	}
	t := d.timer(b.NextProbe.For.D())
	b.NextProbe = &t
	if oldest != nil {
		b.Probe, b.ProbeSlot = oldest.ID(), new(oldest.slot.number)
	}
}
