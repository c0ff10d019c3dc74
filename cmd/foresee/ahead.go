package foresee

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// The limits of a prediction.
const (
	// maxJudged and maxWritten bound the work: how many instances are judged in all steps
	// together, and how many records are written. What is left is computed.
	maxJudged  = 150_000
	maxWritten = 10_000
	// maxWaits is how many times in a row only time passes before the group counts as stuck.
	maxWaits = 100
	farthest = 7 * 24 * time.Hour
)

// Ahead follows the group until it has come to rest, with instances that take pace to start. It
// changes the world, which cannot be used again.
func (w *World) Ahead(pace time.Duration) Course {
	w.pace = pace
	r := newRecorder(w)
	l := w.lead(r)
	l.step(leader.Tick{}) // the first Lists are due
	waits := 0
	for judged := 0; ; judged += 1 + len(w.content.ByGroup[w.group]) {
		l.moved = false
		l.step(leader.Wake{})
		r.look(l.plan)
		w.expect()
		unfinished := w.unfinished(l.plan)
		next, wake := l.next()
		switch {
		case judged > maxJudged || w.written > maxWritten:
			return r.cut()
		case l.moved:
			waits = 0
			continue
		case !wake.IsZero() && !wake.After(w.now):
			continue // there is more to plan
		case !next.IsZero():
			waits = 0
			next = plan.Sooner(next, wake)
		case !unfinished:
			c := r.end()
			c.Rests = true
			return c
		default:
			waits++
			next = wake
		}
		if next.IsZero() || waits > maxWaits || next.Sub(r.begun) > farthest {
			return r.stuck(l.plan.Held[w.group])
		}
		r.waits(l.plan.Held[w.group])
		w.now = next
		w.happen()
		l.step(leader.Tick{})
	}
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
		rec := w.content.Instances[id].Record
		switch rec.Phase {
		case store.Running, store.Finished:
		case store.Booting:
			if rec.Spec.Provider != store.ProviderNone { // nothing waits for a machine that people set up
				return true
			}
		default:
			return true
		}
	}
	return false
}
