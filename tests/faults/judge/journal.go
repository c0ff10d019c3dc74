package judge

import (
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// journal: each step of an instance comes with the entry that explains it, in the same transaction
// (REC-15), is one that may be taken, and what the entry says of the machine is true. That a call
// has its decision before it follows from this and from intents: no record says that a provider may
// be asked without an entry.
//
// Tolerated: what was not written by a replica, as an operator's etcdctl needs no reasons. And a
// verdict that nothing came of: it may be wrong for as long as it is only noted.
func (in *inquiry) journal() {
	who := whose(in.transactions())
	in.walk(in.steps, func(w *world, s *step) {
		if s.found {
			return
		}
		ours := !in.commits || who.wrote(s) != nil
		for _, t := range s.transitions {
			if t.stepped() && ours {
				in.explained(s, t)
			}
		}
		for _, e := range s.journal {
			in.isTrue(w, s, e)
		}
	})
}

// stepped reports whether its phase changed.
func (t transition) stepped() bool {
	return (t.old == nil) != (t.next == nil) || t.old != nil && t.old.Phase != t.next.Phase
}

func (in *inquiry) explained(s *step, t transition) {
	var from, to store.Phase
	if t.old != nil {
		from = t.old.Phase
	}
	if t.next != nil {
		to = t.next.Phase
	}
	says := fmt.Sprintf("%s went from %s to %s", t.id, orNothing(from), orNothing(to))
	switch {
	case to == "" && from != store.Deleting:
		in.violation("SAFE-8", s.at, fmt.Sprintf("the record of %s was removed while it was %s", t.id, from),
			in.evidence(s, t.id)...)
	case to != "" && store.ValidateTransition(from, to) != nil:
		in.violation("SAFE-8", s.at, says+", and no instance may", in.evidence(s, t.id)...)
	}
	of := s.of(t.id)
	if slices.ContainsFunc(of, func(e entry) bool { return e.Instance == t.id && e.From == from && e.To == to }) {
		return
	}
	if from == "" && slices.ContainsFunc(of, func(e entry) bool { return e.Instance != t.id }) {
		return // the replaced instance has the entry
	}
	what := says + ", and the journal does not tell why"
	if len(of) > 0 {
		what = fmt.Sprintf("%s, and the journal says that it went from %s to %s", says, orNothing(of[0].From),
			orNothing(of[0].To))
	}
	in.violation("REC-15", s.at, what, append(in.evidence(s, t.id), in.nearby(t.id, s)...)...)
}

func orNothing(p store.Phase) store.Phase {
	if p == "" {
		return "nothing"
	}
	return p
}

// nearby returns entries about an instance right before and after a step: it may have been
// explained, but not in the same transaction.
func (in *inquiry) nearby(id string, s *step) []history.Event {
	i := slices.Index(in.steps, s)
	var out []history.Event
	for _, o := range in.steps[max(0, i-2):min(len(in.steps), i+3)] {
		if o == s {
			continue
		}
		for _, e := range o.of(id) {
			out = append(out, e.event)
		}
	}
	return out
}

// isTrue checks entries by which something happens because a machine failed. If there was no other
// reason either, destruction reports it.
func (in *inquiry) isTrue(w *world, s *step, e entry) {
	rec := w.instances[e.Instance]
	if e.Claimed || rec == nil || e.Verdict != store.Dead && e.Verdict != store.Lost && e.Verdict != store.Unhealthy ||
		!in.truth.well(e.Instance, s.at) {
		return
	}
	acts := slices.ContainsFunc(s.transitions, func(t transition) bool {
		return t.id == e.Instance && t.leaves() || t.begins() && t.next.Replaces == e.Instance
	})
	if acts && in.reason(w, s, rec) != "" {
		in.violation(fooled(e.Verdict), s.at,
			fmt.Sprintf("%s was well, and the journal calls it %s: %s", e.Instance, e.Verdict, e.Why),
			in.evidence(s, e.Instance)...)
	}
}
