package plan

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// rollCount is the progress of a change.
type rollCount struct {
	outdated int // instances
	strange  int // of these, those made from another template
	leaving  int // of the strange ones, those that are not protected
	done     int // slots whose instance is up to date, healthy and has confirmed what it was sent
	updating int // instances that have not confirmed yet
}

// blameAfter is how often a new template must fail, in different slots if there are enough, with
// none becoming healthy in between, before failures are blamed on it (FLAP-5).
const blameAfter = 3

// countRollout counts the instances that are up to date.
func (d *roll) countRollout() {
	if d.spec == nil {
		return
	}
	for _, m := range d.members {
		switch {
		case !m.Record.Managed || m.gone() || m.phase == store.Draining || m.phase == store.Finished:
		case d.outdated(m):
			d.count.outdated++
			if m.Record.Template != d.hash {
				d.count.strange++
				if m.Record.Protected == "" {
					d.count.leaving++
				}
			}
		case m.updating() && m.phase == store.Running:
			d.count.updating++
		}
	}
	for _, sl := range d.order {
		for _, m := range sl.members {
			if m.phase == store.Finished || d.proven(m) && !d.outdated(m) && !m.updating() {
				d.count.done++
				break
			}
		}
	}
}

// track follows a roll: it begins with the first outdated instance and ends when every slot is done
// (ROLL-4).
func (d *roll) track() {
	if d.spec == nil {
		return
	}
	old := d.g.Status.Record.Rollout
	if old != nil {
		r := *old
		d.rollout = &r
	}
	going := d.count.outdated > 0 || d.count.updating > 0 && old != nil || old != nil && d.count.done < d.spec.Size
	switch r := d.rollout; {
	case r != nil && (r.Template != d.hash || r.Relaunch != d.spec.Relaunch.Number), r == nil && d.count.outdated > 0:
		if d.count.outdated == 0 {
			d.tell("ROLL-1", named(store.EffectRollOff, r.Template), of(store.CauseNoneOutdated))
			d.rollout = nil
			return
		}
		d.rollout = &store.Rollout{
			Template: d.hash, Relaunch: d.spec.Relaunch.Number, Since: d.now.UTC(),
			Progress: d.now.UTC(), Done: d.count.done, Most: d.count.done, Total: d.spec.Size,
			Canary: d.canaries(), Back: d.backFrom(old),
		}
		d.advance()
		if d.spec.Rollout.Strategy == store.StrategyProactive {
			d.tell("ROLL-1", named(store.EffectRollBegun, d.hash),
				store.Cause{Kind: store.CauseSomeOutdated, Count: d.count.outdated})
		}
	case r == nil:
		return
	case !going:
		if d.spec.Rollout.Strategy == store.StrategyProactive {
			d.tell("ROLL-1", named(store.EffectRollComplete, d.hash),
				store.Cause{Kind: store.CauseUpdated, Count: d.count.done, Limit: d.spec.Size})
		}
		d.rollout = nil
		return
	default:
		d.follow(r)
	}
	d.rollout.Total = d.spec.Size
	d.analysis.follow()
	d.stages.follow()
	d.blame()
	d.stall()
}

// advance records progress: the deadline begins, with nothing counted towards it.
func (d *roll) advance() {
	d.rollout.Stood, d.rollout.Stalled, d.rollout.StalledCause = 0, "", store.Cause{}
	d.beginDeadline()
}

// beginDeadline begins the deadline, in full also after an outage: what was under way may have been
// lost. The time without an outage adds up to twice the deadline at most, so that an outage that
// comes back again and again does not hide a bad template for ever.
func (d *roll) beginDeadline() {
	deadline := d.spec.Rollout.ProgressDeadline.D()
	t := d.timer(max(0, min(deadline, 2*deadline-d.rollout.Stood.D())))
	d.rollout.Stalls = &t
}

// follow records a roll's progress. A slot that was done, fails and recovers is no progress.
func (d *roll) follow(r *store.Rollout) {
	// an instance beyond the size is no progress
	most, done := min(max(r.Most, r.Done), d.spec.Size), min(d.count.done, d.spec.Size)
	switch {
	case done > most:
		r.Progress = d.now.UTC()
		if !r.Failed {
			clearBlame(r)
		}
		d.advance()
	case r.Stalls == nil && r.Stalled == "":
		d.beginDeadline()
	}
	r.Done, r.Most = d.count.done, max(most, done)
}

// stall reports a roll without progress for too long. Times in which no work is allowed do not
// count, nor does an outage of a provider.
func (d *roll) stall() {
	r := d.rollout
	idle := d.spec.Paused || d.spec.Stopped || d.spec.Unstarted || d.spec.Deleting || d.s.Shard.Record.Hold != nil
	idle = idle || d.spec.Rollout.Strategy != store.StrategyProactive
	if idle || d.stages.rests || d.rollRests() || d.budget.waitsForOthers() || d.analysis.waitForNumber() {
		r.Stalls, r.Stood = nil, 0
	}
	if r.Stalls == nil {
		return
	}
	known := d.g.Due
	if old := d.g.Status.Record.Rollout; old == nil || old.Stalls == nil || *old.Stalls != *r.Stalls {
		known = nil // it begins with this plan
	}
	due := d.ends(known, store.TimerProgress, r.Stalls)
	name, out, failing := d.outage()
	if failing && out.Lasts(d.now) {
		from := out.Since
		if !due.Add(-r.Stalls.For.D()).Before(from.Add(outageCounts)) {
			from = d.now // the deadline ran in spite of the outage: an instance tested the template
		}
		left := min(store.Duration(max(0, due.Sub(from))), r.Stalls.For)
		r.Stood, r.Stalls = r.Stood+r.Stalls.For-left, nil
		d.block("ROLL-4", task{work: store.WorkRoll}, store.BlockedByOutage, store.BlockedFacts{
			Name: name, Text: out.Why, Since: out.Since.UTC().Round(0),
		})
		d.wake(out.Until)
		return
	}
	if counts := out.Since.Add(outageCounts); failing && d.now.Before(counts) {
		d.wake(counts)
	}
	if d.now.Before(due) {
		d.wake(due)
		return
	}
	if failing { // a moment shows whether it is an outage
		d.wake(d.now.Add(outageLook))
		return
	}
	why := store.Cause{Kind: store.CauseNoProgress, For: d.spec.Rollout.ProgressDeadline}
	r.Stalls, r.StalledCause, r.Stalled = nil, why, reason.Short(why)
	d.tell("ROLL-4", effect(store.EffectRollStalled), why)
}

// outageLook is how often a roll whose deadline is over is planned until it is known whether its
// provider has an outage.
const outageLook = 10 * time.Second

// outage returns the outage of a provider of the group because of which the roll cannot make
// progress. While an instance of the new template has a machine and is not healthy, or the provider
// refuses the template, that may be the reason as well, and there is none.
func (d *roll) outage() (name string, out Outage, failing bool) {
	if len(d.s.Outages) == 0 || d.blamed() {
		return "", Outage{}, false
	}
	names := []string{d.spec.Provider}
	for _, m := range d.members {
		if d.tests(m) {
			return "", Outage{}, false
		}
		if m.Record.Managed && !slices.Contains(names, m.Record.Spec.Provider) {
			names = append(names, m.Record.Spec.Provider)
		}
	}
	for _, name := range names {
		if out, failing := d.s.Outages[name]; failing {
			return name, out, true
		}
	}
	return "", Outage{}, false
}

// tests reports whether a member shows how the new template works: it has a machine, and it is not
// healthy and up to date. A machine that the provider is still to create or restart shows nothing,
// unless the provider says that the template is wrong, and neither does one that is dead or lost.
func (d *roll) tests(m *member) bool {
	if !m.Record.Managed || d.outdated(m) || !m.phase.Fills() || m.dead() || m.missed() {
		return false
	}
	switch m.phase {
	case store.Pending, store.Creating:
		return m.Calls.WrongTemplate
	case store.Stopping:
		return m.Record.Restart != nil && m.Record.Restart.Level == store.RestartWorkload
	default:
		return !d.upToDate(m)
	}
}

// unproven reports whether a slot has no usable member, or an instance of the new template that is
// not healthy and up to date: the change itself may be why the roll stalls.
func (d *roll) unproven() bool {
	return slices.ContainsFunc(d.order, func(sl *slot) bool {
		fills := func(m *member) bool { return m.phase.Fills() || m.phase == store.Finished }
		fresh := func(m *member) bool { return fills(m) && !d.outdated(m) && !d.upToDate(m) }
		return !slices.ContainsFunc(sl.members, fills) || slices.ContainsFunc(sl.members, fresh)
	})
}

// blame stops a roll whose replacements fail one after the other (FLAP-5). A relaunch has no new
// template that could be the cause.
func (d *roll) blame() {
	r := d.rollout
	slots, failures := d.failedSince(r.Progress)
	if r.Blamed != "" && slots == 0 && !r.Failed {
		clearBlame(r) // an operator has reset the slots
	}
	if r.Blamed != "" || d.count.strange == 0 || failures < blameAfter ||
		slots < min(blameAfter, d.spec.Size, d.stages.reach()) {
		return
	}
	why := store.Cause{Kind: store.CauseTemplateFails, Name: d.hash, Count: failures, Limit: slots}
	r.BlamedCause, r.Blamed = why, reason.Short(why)
	d.tell("FLAP-5", effect(store.EffectRollStopped), why)
}

func clearBlame(r *store.Rollout) { r.Blamed, r.BlamedCause = "", store.Cause{} }

// failedSince counts the slots in which the new template has failed since a time, and how often.
func (d *roll) failedSince(since time.Time) (slots, failures int) {
	for _, sl := range d.order {
		before := failures
		for _, f := range sl.Record.Failures {
			if f.Template == d.hash && !f.At.Before(since) {
				failures++
			}
		}
		if failures > before {
			slots++
		}
	}
	return slots, failures
}
