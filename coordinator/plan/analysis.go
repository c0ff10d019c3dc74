package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// analysis judges a roll by external metrics.
type analysis struct {
	*draft
	awaits *awaited // that the roll waits for; nil: none
}

// awaited is an analysis that blocks a roll: its value is missing, or out of bounds.
type awaited struct {
	source, why string
	recorded    bool // since when the roll has waited for it
}

// analyzed reports whether external metrics judge the roll. They do not judge a rollback, whether
// the coordinator or an operator began it: the bad numbers may be what it ends.
func (d *analysis) analyzed() bool {
	return len(d.spec.Rollout.Analysis) > 0 && d.roll.rollout.Back == "" && !d.roll.toGood() &&
		d.spec.Rollout.Strategy == store.StrategyProactive
}

// follow evaluates the analyses of a roll (ROLL-5). Once an instance has the new template, a value
// that two answers show to be out of bounds for long enough stops the roll. A missing value proves
// nothing: the roll waits for it.
func (d *analysis) follow() {
	r := d.roll.rollout
	if !d.analyzed() || r.Failed {
		r.Doubt, r.Doubted = nil, ""
		return
	}
	d.awaits = nil
	doubted := false
	for i := range d.spec.Rollout.Analysis {
		a := &d.spec.Rollout.Analysis[i]
		reading := d.g.Readings[a.From]
		value, known := reading.Fresh(d.now)
		if known {
			d.wake(reading.Asked.Add(query.Fresh))
		}
		switch {
		case !known:
			d.waitFor(a.From, "no number: "+reading.Missing())
			continue
		case a.Holds(value):
			if d.predatesLastStep(reading) {
				d.waitFor(a.From, "no answer yet since the last instance was done")
			}
			continue
		}
		says := fmt.Sprintf("it is %v, and %s is allowed", value, a.Bounds())
		d.waitFor(a.From, says)
		if doubted || !d.hasNewInstance() || !d.mayAct() || d.now.Before(d.s.GraceEnd) {
			continue
		}
		doubted = true
		if due := d.doubt(a); reading.Asked.Before(due) {
			d.wake(due)
			continue
		}
		why := store.Cause{Kind: store.CauseAnalysis, Name: a.From, Text: says}
		r.Failed, r.BlamedCause, r.Blamed = true, why, reason.Short(why)
		d.tell("ROLL-5", effect(store.EffectRollStopped), why)
		doubted = false
		break
	}
	if !doubted {
		r.Doubt, r.Doubted = nil, ""
	}
}

// predatesLastStep reports whether a value is older than the last step of a roll that waits for no
// canary: it says nothing about that step. A step that another leader's clock has dated into our
// future is ignored.
func (d *analysis) predatesLastStep(reading query.Reading) bool {
	return !d.stages.testsCanaries() && d.roll.rollout.Done > 0 && reading.Asked.Before(d.roll.rollout.Progress) &&
		!d.roll.rollout.Progress.After(d.now)
}

func (d *analysis) waitFor(source, why string) {
	if d.awaits == nil {
		d.awaits = &awaited{source: source, why: why}
	}
}

// doubt returns when an analysis that has been out of bounds since the given time counts as failed.
func (d *analysis) doubt(a *store.Analysis) time.Time {
	r, known := d.roll.rollout, d.g.Due
	if r.Doubt == nil || r.Doubted != a.From || r.Doubt.For != a.Patience() {
		t := d.timer(a.Patience().D())
		r.Doubt, r.Doubted, known = &t, a.From, nil
	}
	return d.ends(known, store.TimerDoubt, r.Doubt)
}

// hasNewInstance reports whether an instance has the new template and is up. Before that, no value
// concerns the template.
func (d *analysis) hasNewInstance() bool {
	return d.roll.rollout.Doubt != nil || slices.ContainsFunc(d.members, func(m *member) bool {
		return m.Record.Managed && m.Record.Template == d.roll.rollout.Template && m.phase == store.Running
	})
}

// passes reports whether all analyses have been answered since a time, with values within their
// bounds.
func (d *analysis) passes(since time.Time) bool {
	if !d.analyzed() {
		return true
	}
	for i := range d.spec.Rollout.Analysis {
		if a := &d.spec.Rollout.Analysis[i]; d.g.Readings[a.From].Asked.Before(since) {
			d.waitFor(a.From, "no answer yet since the canaries have been healthy for long enough")
		}
	}
	return d.awaits == nil
}

// holdUp makes the roll wait for an analysis before its next step, and records that once. It
// returns false if there is nothing to wait for.
func (d *analysis) holdUp() bool {
	if d.awaits == nil {
		return false
	}
	if !d.awaits.recorded {
		d.awaits.recorded = true
		d.block("ROLL-5", task{work: store.WorkRoll}, store.BlockedByAnalysis,
			store.BlockedFacts{Name: d.awaits.source, Text: d.awaits.why})
	}
	return true
}

// waitForNumber makes the roll wait for an analysis if that is the only reason why it makes no
// progress. While an instance on the new template is unhealthy, that may be why the value is
// bad.
func (d *analysis) waitForNumber() bool {
	return d.awaits != nil && d.roll.rollout.Blamed == "" && !d.roll.unproven() && d.holdUp()
}
