package foresee

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// The limits of a prediction.
const (
	// mostJudged and mostWritten bound the work: how many instances are judged in all steps
	// together, and how many records are written. What is left is computed.
	mostJudged  = 150_000
	mostWritten = 10_000
	// mostWaits is how many times in a row only time passes before the group counts as stuck.
	mostWaits = 100
	farthest  = 7 * 24 * time.Hour
)

// Ahead follows the group until it has come to rest, with instances that take pace to start. It
// changes the world, which cannot be used again.
func (w *World) Ahead(pace time.Duration) Course {
	w.pace = pace
	r := newRecorder(w)
	w.list()
	waits := 0
	for judged := 0; ; judged += 1 + len(w.content.ByGroup[w.group]) {
		p := w.Plan()
		if judged == 0 {
			r.begin(p)
		}
		moved := w.carryOut(p, r)
		r.look(p)
		w.expect()
		unfinished := w.unfinished(p)
		next := w.nextEvent()
		switch {
		case judged > mostJudged || w.written > mostWritten:
			return r.cut()
		case moved:
			waits = 0
			continue
		case !next.IsZero():
			waits = 0
		case !unfinished:
			c := r.end()
			c.Rests = true
			return c
		default:
			waits++
			next = p.Next
		}
		if next.IsZero() || waits > mostWaits || next.Sub(r.begun) > farthest {
			c := r.end()
			c.Held = p.Held[w.group]
			return c
		}
		w.now = next
		w.happen()
	}
}

// carryOut carries out a plan, and reports whether anything but the status has changed.
func (w *World) carryOut(p plan.Plan, r *recorder) (moved bool) {
	for _, a := range p.Actions {
		if !w.allHold(a.Conditions) {
			continue // an earlier action has changed the record: the next plan will see that
		}
		r.note(a)
		if len(a.Writes) > 0 {
			w.write(append(plan.GoneWrites([]*plan.Action{&a}, 0), a.Writes...)...)
		}
		moved = moved || a.Instance != "" || !a.NoJournal && len(a.Writes) > 0
	}
	for _, c := range p.Calls {
		if w.call(c) {
			moved = true
		}
	}
	return moved
}

func (w *World) allHold(conditions []store.Condition) bool {
	for _, c := range conditions {
		if !c.Holds(w.kvs[c.Key]) {
			return false
		}
	}
	return true
}

// unfinished reports whether something of the group is in progress, or held.
func (w *World) unfinished(p plan.Plan) bool {
	if len(p.Held[w.group]) > 0 {
		return true
	}
	for _, id := range w.content.ByGroup[w.group] {
		if p.Judgments.Of(id).Verdict == store.Suspect {
			return true
		}
		switch w.content.Instances[id].Record.Phase {
		case store.Running, store.Finished:
		default:
			return true
		}
	}
	return false
}
