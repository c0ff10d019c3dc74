package judge

import (
	"fmt"
	"maps"
	"slices"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// losses: the slot of an instance whose record was lost is not filled, unless an operator released
// a hold knowing of the loss; and no replica creates a shard (SAFE-15).
//
// Tolerated: an order to adopt a machine into the slot. What was lost together with etcd's history
// is left to the other questions.
func (in *inquiry) losses() {
	who := whose(in.transactions())
	lost := map[string]lostRecord{}
	in.walk(in.steps, func(w *world, s *step) {
		if s.fresh {
			clear(lost)
		}
		if s.found {
			return
		}
		in.shardMade(w, s, who)
		if !s.byHand {
			in.slotsFilled(s, lost)
		}
		in.noteLosses(s, lost)
	})
}

// lostRecord is a record that was removed by hand while its instance filled a slot.
type lostRecord struct {
	store.Instance
	revision   store.Revision
	transition transition
}

func (in *inquiry) shardMade(w *world, s *step, who *authors) {
	for _, e := range s.changes {
		if e.Change.Key != in.keys.Shard() || e.Change.Deleted || w.value(e.Change.Key) != nil {
			continue
		}
		if by := who.wrote(s); by != nil {
			in.violation("SAFE-15", s.at, fmt.Sprintf("replica %s created the shard", by.commit().Replica), by.begun, e)
		}
	}
}

func (in *inquiry) slotsFilled(s *step, lost map[string]lostRecord) {
	for _, t := range s.transitions {
		if !t.begins() || !t.next.Managed || !t.next.Phase.Fills() || lost[t.id].ID != "" {
			continue
		}
		if slices.ContainsFunc(s.obeyed,
			func(r store.Request) bool { return r.Instance == t.id && r.Kind == store.RequestAdopt }) {
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(lost)) {
			if l := lost[id]; l.Group == t.next.Group && l.Slot == t.next.Slot {
				in.violation("SAFE-15", s.at,
					fmt.Sprintf("%s was made for slot %d of %s while the record of %s, which has that slot, was lost%s",
						t.id, l.Slot, l.Group, id, s.because(t.id)),
					append(in.evidence(s, t.id), l.transition.event)...)
			}
		}
	}
}

func (in *inquiry) noteLosses(s *step, lost map[string]lostRecord) {
	for i, e := range s.changes {
		if id, is := in.goneNote(e); is {
			delete(lost, id)
		}
		if r := as[store.Shard](s.records[i]); r != nil && r.Reviewed != nil {
			maps.DeleteFunc(lost, func(_ string, l lostRecord) bool { return l.revision <= r.Reviewed.Seen })
		}
	}
	for _, t := range s.transitions {
		switch {
		case t.next != nil:
			delete(lost, t.id)
		case t.old != nil && t.old.Managed && t.old.Phase.Fills() && s.byHand && !in.notesGone(s, t.id):
			lost[t.id] = lostRecord{Instance: *t.old, revision: s.revision, transition: t}
		}
	}
}

// notesGone reports whether a step notes an instance as deleted on purpose.
func (in *inquiry) notesGone(s *step, instance string) bool {
	return slices.ContainsFunc(s.changes, func(e history.Event) bool {
		id, is := in.goneNote(e)
		return is && id == instance
	})
}
