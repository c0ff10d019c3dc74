package judge

import (
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// destruction: a machine that is well is not taken down, restarted or replaced unless somebody
// asked for it.
//
// A replacement that is requested for one that is well is a violation of its own, also when it is
// called off again: somebody was fooled. Whether a verdict alone was wrong, of which nothing came,
// is nobody's business: what is suspect or lost for a moment, and left alone, is what SAFE is for.
func (in *inquiry) destruction() {
	in.walk(in.steps, func(w *world, s *step) {
		if s.found || s.byHand {
			return // who did it, and on what, is not known
		}
		for _, t := range s.turns {
			switch {
			case t.leaves():
				in.takenDown(w, s, t)
			case t.old != nil && t.next != nil && t.old.Phase == store.Draining && t.next.Phase == store.Deleting:
				in.returned(w, s, t)
			case t.begins() && t.next.Replaces != "":
				in.replaced(w, s, t)
			}
		}
	})
}

// fooled is the rule that was broken when a machine that is well was taken for something else.
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

func (in *inquiry) takenDown(w *world, s *step, t turn) {
	if t.old.Phase == store.Finished || !in.truth.well(t.id, s.at) || in.reason(w, s, t.old) != "" {
		return
	}
	in.violation(fooled(s.verdict(t.id)), s.at,
		fmt.Sprintf("%s was well and nobody asked it to go, and it was taken from %s to %s%s", t.id, t.old.Phase,
			t.next.Phase, s.because(t.id)), in.evidence(s, t.id)...)
}

// returned: one that drained because it was lost, and is back, is not destroyed while its slot
// needs it, unless it comes and goes too often (DET-15).
func (in *inquiry) returned(w *world, s *step, t turn) {
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

// replaced looks at whom a new instance is to replace. One that is on its way out already was
// looked at then.
func (in *inquiry) replaced(w *world, s *step, t turn) {
	old := w.instances[t.next.Replaces]
	if old == nil || !old.Phase.Fills() {
		return
	}
	for _, o := range s.turns {
		if o.id == old.ID && o.leaves() {
			return // told of there
		}
	}
	if !in.truth.well(old.ID, s.at) || in.reason(w, s, old) != "" {
		return
	}
	in.violation(fooled(s.verdict(old.ID)), s.at,
		fmt.Sprintf("%s was well and nobody asked it to go, and %s was requested in its place%s", old.ID, t.id,
			s.because(old.ID)),
		in.evidence(s, old.ID)...)
}

// because is what the journal says why something was done to an instance.
func (s *step) because(id string) string {
	for _, e := range s.of(id) {
		if e.Why != "" {
			return fmt.Sprintf(": %s, %s", e.Rule, e.Why)
		}
	}
	return "; the journal says nothing"
}
