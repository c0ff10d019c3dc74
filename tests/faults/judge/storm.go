package judge

import (
	"fmt"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// storm: while many machines cannot be heard of at once, and until they can have returned, none of
// them that runs is replaced or destroyed, however long that takes (SAFE-2).
//
// Tolerated: what was ordered, and what the journal gives another reason for that is true. One that
// was cut off, or hurt otherwise, before many were: it may be known to be lost when the storm
// begins. One that was hurt on its own afterwards. One that the provider's lists, wrong at the same
// time, did not show before anyone could see that there is a storm. One that a probe replaces
// after storm.probe_after, and all once an operator has ended the storm.
func (in *inquiry) storm() {
	var storms []trouble
	for _, tr := range in.truth.troubles {
		if tr.ManyCut {
			storms = append(storms, tr)
		}
	}
	if len(storms) == 0 {
		return
	}
	in.walk(in.steps, func(w *world, s *step) {
		if s.found {
			return
		}
		for _, t := range s.transitions {
			rec := t.old
			var what string
			switch {
			case t.leaves():
				what = fmt.Sprintf("it was taken from %s to %s", t.old.Phase, t.next.Phase)
			case t.requests() && t.next.Replaces != "":
				if rec = w.instances[t.next.Replaces]; rec == nil || !rec.Phase.Fills() || s.takesDown(rec.ID) {
					continue
				}
				what = t.id + " was requested in its place"
			default:
				continue
			}
			for _, tr := range storms {
				if in.caughtIn(tr, rec.ID, s.at) && in.manyCaught(tr, w, s.at) && in.reason(w, s, rec) == "" &&
					!probed(w, rec) && !in.missedEarly(tr, s, rec.ID) {
					in.violation("SAFE-2", s.at, fmt.Sprintf("many were cut off at once (%s), %s with them, and %s%s",
						tr.What, rec.ID, what, s.because(rec.ID)),
						append([]history.Event{tr.event}, in.evidence(s, rec.ID)...)...)
					break
				}
			}
		}
	})
}

// missedEarly reports whether a machine was judged dead before the mass loss could be seen: its
// stream had broken, and the provider's lists, which were wrong just then, did not show it (DET-4).
func (in *inquiry) missedEarly(tr trouble, s *step, id string) bool {
	return s.verdict(id) == store.Dead && s.at < tr.from.Add(in.terms.settle()) &&
		in.truth.liedWithin(span{s.at.Add(-in.terms.recovery()), s.at + 1})
}

// takesDown reports whether a step takes an instance down.
func (s *step) takesDown(id string) bool {
	for _, t := range s.transitions {
		if t.id == id && t.leaves() {
			return true
		}
	}
	return false
}

// caughtIn reports whether a machine was healthy at a moment except that it was cut off, or froze,
// together with many others.
func (in *inquiry) caughtIn(tr trouble, id string, at history.Time) bool {
	f := in.truth.fates[id]
	if f == nil || in.truth.down(id, at) {
		return false
	}
	from, to := tr.from.Add(-in.terms.Slack), tr.to.Add(in.terms.recovery())
	if at < tr.from || at >= to {
		return false
	}
	caught := false
	for _, h := range f.harms {
		silence := h.kind == history.Cut || h.kind == history.Frozen
		switch {
		case h.from > at, h.to != always && h.to.Add(in.terms.recovery()) < tr.from:
		case !silence || h.from < from || h.from >= tr.to, at >= tr.to && h.to > tr.to.Add(in.terms.Slack):
			// it has a fault of its own
			return false
		default:
			caught = true
		}
	}
	return caught
}

// manyCaught reports whether as many agents were cut off as make a storm by the default settings:
// three and half of a group, or five and a fifth of the shard in two groups. Machines whose agent
// has never registered are not lost.
func (in *inquiry) manyCaught(tr trouble, w *world, at history.Time) bool {
	var all, lost, groups int
	for _, ids := range w.groups {
		of, caught := 0, 0
		for id := range ids {
			rec := w.instances[id]
			if rec == nil || !rec.Managed || rec.Phase.Fills() && !rec.Phase.Registered() {
				continue
			}
			of++
			if in.caughtIn(tr, id, at) {
				caught++
			}
		}
		if caught > 0 && caught >= min(3, len(ids)) && 2*caught >= of {
			return true
		}
		all, lost = all+of, lost+caught
		if caught > 0 {
			groups++
		}
	}
	return lost >= 5 && 5*lost >= all && groups >= 2
}

// probed reports whether an operator ended the storm of an instance's group, or the instance is the
// probe of the storm.
func probed(w *world, rec *store.Instance) bool {
	st := w.statuses[rec.Group]
	return st != nil && st.Storm != nil && (st.Storm.By != "" || st.Storm.Probe == rec.ID)
}
