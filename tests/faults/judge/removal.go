package judge

import (
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// removals: the record of a machine goes last (SAFE-8): when a List has shown that there is none,
// which was begun after the machine was deleted, and after everything that could still make one
// must have ended.
//
// Tolerated: a List that was made to lie, and records that no replica deleted.
func (in *inquiry) removals() {
	lists, deleted := in.lists(), in.deleted()
	in.walk(in.steps, func(w *world, s *step) {
		for _, t := range s.transitions {
			if s.found || s.byHand || t.old == nil || t.next != nil || !t.old.Called || t.old.Phase != store.Deleting ||
				len(lists) == 0 {
				continue
			}
			from, done := deleted[t.id]
			shown := false
			for _, l := range lists {
				shown = shown || done && l.from >= from.At && l.to <= s.at
			}
			late, pending := in.lateCreate(t.id, s.at)
			proved := !pending
			for _, l := range lists {
				proved = proved || l.from >= late.At.Add(in.terms.CallTimeout/2) && l.to <= s.at
			}
			switch {
			case !proved:
				in.violation("SAFE-8", s.at,
					fmt.Sprintf("the record of %s went %s after a Create that may still have made a machine", t.id,
						s.at.Sub(late.At).Round(1e8)), append(in.evidence(s, t.id), late)...)
			case !shown:
				in.violation("SAFE-8", s.at,
					fmt.Sprintf("the record of %s went, and no List that was begun after its machine was deleted had shown that it "+
						"is gone", t.id), append(in.evidence(s, t.id), from)...)
			}
		}
	})
	made := map[string]bool{}
	for _, e := range in.events {
		if e.Machine == nil || e.Machine.What != history.Made || made[e.Machine.Instance] ||
			in.truth.renewed(e.At, late) {
			continue // doubles reports a second one
		}
		made[e.Machine.Instance] = true
		if end, gone := in.gone(e.Machine.Instance, e.At); gone {
			in.violation("SAFE-8", e.At, fmt.Sprintf("a machine was made for %s, whose record was gone",
				e.Machine.Instance), append(in.past(e.Machine.Instance, e.At), end, e)...)
		}
	}
}

// lateCreate returns the last Create of an instance that failed but was carried out later. The
// caller cannot know when: it has to allow for the whole time limit of a call. Half of that is
// required here, because the caller may have started to count before its call arrived.
func (in *inquiry) lateCreate(id string, before history.Time) (begun history.Event, there bool) {
	open := map[uint64]history.Event{}
	for _, e := range in.events {
		c := e.Call
		switch {
		case c == nil || c.Instance != id || c.Method != history.Create || e.At > before:
		case !c.Ended:
			open[c.ID] = e
		case strings.HasSuffix(c.Lie, history.DoneLate):
			begun, there = open[c.ID], true
		}
	}
	return begun, there
}

// lists returns when Lists were in progress that were answered.
func (in *inquiry) lists() []span {
	var out []span
	begun := map[uint64]history.Time{}
	for _, e := range in.events {
		c := e.Call
		switch {
		case c == nil || c.Method != history.List:
		case !c.Ended:
			begun[c.ID] = e.At
		case c.Err == "":
			if from, known := begun[c.ID]; known {
				out = append(out, span{from, e.At})
			}
		}
	}
	return out
}

// deleted returns the ends of the first successful Delete of each machine.
func (in *inquiry) deleted() map[string]history.Event {
	out := map[string]history.Event{}
	for _, e := range in.events {
		if c := e.Call; c != nil && c.Ended && c.Method == history.Delete && c.Err == "" {
			if _, known := out[c.Instance]; !known {
				out[c.Instance] = e
			}
		}
	}
	return out
}
