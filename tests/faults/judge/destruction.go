package judge

import (
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// destruction: a healthy machine is not taken down, restarted or replaced without an order.
//
// A requested replacement of a healthy machine is a violation of its own, even if it is called off
// again: the leader was wrong. A wrong verdict alone, without consequences, is not a violation: an
// instance may be suspect or lost for a moment if it is left alone, as SAFE requires.
func (in *inquiry) destruction() {
	in.walk(in.steps, func(w *world, s *step) {
		if s.found || s.byHand {
			return // the author and the reason are unknown
		}
		for _, t := range s.transitions {
			switch {
			case t.leaves():
				in.takenDown(w, s, t)
			case t.old != nil && t.next != nil && t.old.Phase == store.Draining && t.next.Phase == store.Deleting:
				in.returned(w, s, t)
			case t.requests() && t.next.Replaces != "":
				in.replaced(w, s, t)
			}
		}
	})
}

// fooled is the rule that was broken when a healthy machine was judged otherwise.
func fooled(v store.Verdict) string {
	switch v {
	case store.Dead:
		return "DET-4"
	case store.Lost:
		return "SAFE-1"
	case store.Unhealthy:
		return "DET-9"
	case store.Stuck:
		return "DET-10"
	default:
		return "SAFE-4"
	}
}

func (in *inquiry) takenDown(w *world, s *step, t transition) {
	if t.old.Phase == store.Finished || !in.truth.well(t.id, s.at) || in.reason(w, s, t.old) != "" {
		return
	}
	in.violation(fooled(s.verdict(t.id)), s.at,
		fmt.Sprintf("%s was well and its removal was not ordered, and it was taken from %s to %s%s", t.id, t.old.Phase,
			t.next.Phase, s.because(t.id)), in.evidence(s, t.id)...)
}

// returned: an instance that drained because it was lost, and is back, is not destroyed while its
// slot needs it, unless it comes and goes too often (DET-15).
func (in *inquiry) returned(w *world, s *step, t transition) {
	if t.old.Drain == nil || !t.old.Drain.Lost || !w.looksWell(t.id) || !in.truth.well(t.id, s.at) ||
		in.reason(w, s, t.old) != "" {
		return
	}
	if sl := w.slots[fmt.Sprintf("%s/%d", t.old.Group, t.old.Slot)]; sl != nil &&
		len(sl.Failures) >= w.inForce(t.old.Group).spec.Flap.Failures {
		return
	}
	in.violation("DET-15", s.at, fmt.Sprintf("%s was lost, has returned, and was destroyed all the same%s", t.id,
		s.because(t.id)), in.evidence(s, t.id)...)
}

// replaced checks which instance a new one will replace. One that is already being removed was
// checked then.
func (in *inquiry) replaced(w *world, s *step, t transition) {
	old := w.instances[t.next.Replaces]
	if old == nil || !old.Phase.Fills() {
		return
	}
	for _, o := range s.transitions {
		if o.id == old.ID && o.leaves() {
			return // told of there
		}
	}
	if !in.truth.well(old.ID, s.at) || in.reason(w, s, old) != "" {
		return
	}
	in.violation(fooled(s.verdict(old.ID)), s.at,
		fmt.Sprintf("%s was well and its removal was not ordered, and %s was requested in its place%s", old.ID, t.id,
			s.because(old.ID)),
		in.evidence(s, old.ID)...)
}

// because returns the journal's reason for an action on an instance.
func (s *step) because(id string) string {
	for _, e := range s.of(id) {
		if e.Why != "" {
			return fmt.Sprintf(": %s, %s", e.Rule, e.Why)
		}
	}
	return "; the journal says nothing"
}
