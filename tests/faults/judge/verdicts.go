package judge

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// verdicts: whatever is done to an instance because it failed rests on what etcd held at that very
// revision, and on what its provider can have said. Whether the machine was well in truth is asked
// elsewhere (destruction): who was hurt a moment ago may rightly be taken for failed, but not too
// early, and not against the evidence.
//
// Tolerated: what there was another reason for. Then nothing rests on the verdict.
func (in *inquiry) verdicts() {
	who := whose(in.transactions())
	leaderTerms := in.leaderTerms()
	in.walk(in.steps, func(w *world, s *step) {
		if s.found {
			return
		}
		by := who.wrote(s)
		for _, id := range acted(s) {
			rec := w.instances[id]
			if rec == nil || in.reason(w, s, rec) != "" {
				continue
			}
			switch s.verdict(id) {
			case store.Lost:
				in.lostByRight(w, s, id)
				if by != nil {
					in.lostInTime(s, id, by, leaderTerms)
				}
			case store.Dead:
				in.deadByRight(w, s, id)
			case store.Stuck:
				in.stuckByRight(s, id, rec)
			default: // unhealthy, by its own report: see destruction
			}
		}
	})
}

// acted returns the instances that a step takes down or replaces.
func acted(s *step) []string {
	var out []string
	for _, t := range s.transitions {
		switch {
		case t.leaves():
			out = append(out, t.id)
		case t.begins() && t.next.Replaces != "" && !s.takesDown(t.next.Replaces):
			out = append(out, t.next.Replaces)
		}
	}
	return out
}

// lostByRight: an action on a lease that ended compares that its key is absent (SAFE-4).
func (in *inquiry) lostByRight(w *world, s *step, id string) {
	if e, there := w.raw[in.keys.Alive(id)]; there {
		in.violation("SAFE-4", s.at, fmt.Sprintf("%s was called lost at revision %d, and its lease was there%s", id,
			s.revision, s.because(id)), append(in.evidence(s, id), e)...)
	}
}

// leaderTerms returns when each fence was first compared: right after its owner had won.
func (in *inquiry) leaderTerms() map[store.Fence]history.Event {
	out := map[store.Fence]history.Event{}
	for _, e := range in.events {
		if c := e.Commit; c != nil && !c.Ended && c.Fence != (store.Fence{}) {
			if _, known := out[c.Fence]; !known {
				out[c.Fence] = e
			}
		}
	}
	return out
}

// lostInTime: after an election agents have a lease and the longest back-off to return (SAFE-1).
// Both times are of one process.
func (in *inquiry) lostInTime(s *step, id string, by *transaction, leaderTerms map[store.Fence]history.Event) {
	began, known := leaderTerms[by.fence]
	if grace := in.terms.LeaseTTL + in.terms.Reconnect; known && by.begun.At.Sub(began.At) < grace {
		in.violation("SAFE-1", s.at,
			fmt.Sprintf("%s was called lost %s after %s had come to lead, and agents have %s to return%s", id,
				by.begun.At.Sub(began.At).Round(1e6),
				by.commit().Replica, grace, s.because(id)), append(in.evidence(s, id), began, by.begun)...)
	}
}

// deadByRight: dead is what its provider says (DET-4), and that is true unless the run makes it
// lie.
//
// Tolerated: who was down a moment ago, since lists are late, and who was started again, by itself
// or by order.
func (in *inquiry) deadByRight(w *world, s *step, id string) {
	long := in.terms.recovery()
	f := in.truth.fates[id]
	if f == nil || len(f.up) == 0 || in.truth.liedWithin(span{s.at.Add(-2 * long), s.at + 1}) ||
		in.truth.renewed(s.at, long) {
		return
	}
	var since history.Time
	for _, u := range f.up {
		if u.has(s.at) {
			since = u.from
		}
	}
	rec := w.instances[id]
	first := len(f.up) == 1 && (rec.Phase == store.Booting || rec.Phase == store.Checking || rec.Phase == store.Running)
	if since == 0 || !first && s.at.Sub(since) < long || f.endsSoon(s.at) {
		return
	}
	in.violation("DET-4", s.at, fmt.Sprintf("%s was called dead, and it runs, as its provider knows%s", id,
		s.because(id)), in.evidence(s, id)...)
}

// endsSoon reports whether a machine went down, other than by order, at about a moment.
func (f *fate) endsSoon(at history.Time) bool {
	for _, h := range f.harms {
		if h.kind == history.Crashed && h.from < at.Add(late) {
			return true
		}
	}
	for _, e := range f.told {
		if e.Machine != nil && e.Machine.What == history.Ended && e.Machine.Why != history.ByCall &&
			e.At.Sub(at) < late && at.Sub(e.At) < late {
			return true
		}
	}
	return false
}

// stuckByRight: a new machine's agent has the whole registration_timeout to register (DET-11),
// whatever wall clocks say (SAFE-13). It runs from the record of the phase, or from the beginning
// of a term.
func (in *inquiry) stuckByRight(s *step, id string, rec *store.Instance) {
	told := false
	for _, e := range s.of(id) {
		told = told || e.Rule == "DET-11" || e.Why != "" && rec.Phase == store.Booting
	}
	if !told || rec.Phase != store.Booting {
		return
	}
	var began said
	for _, r := range in.said[id] {
		if r.phase == store.Booting && began.phase == "" && !r.found {
			began = r
		}
	}
	limit := rec.Spec.RegistrationTimeout.D()
	if waited := s.at.Sub(began.by); began.phase != "" && waited < limit-time.Second {
		in.violation("DET-11", s.at,
			fmt.Sprintf("%s was given up %s after it had begun to boot, and its agent has %s to register%s", id,
				waited.Round(1e6), limit, s.because(id)),
			in.evidence(s, id)...)
	}
}
