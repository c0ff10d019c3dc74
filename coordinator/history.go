package coordinator

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

const (
	mostMarks = 64 // that are kept, however long nothing can be compacted
	marksEach = 12 // so many marks for each time that history is kept
	lateBy    = 6  // history may be older by such a part before it is ours to compact: others had their turn then
)

// history is what a leader knows of the age of etcd's revisions: marks, oldest first. It has no clock.
type history struct{ marks []store.Mark }

// pass makes everything older.
func (h *history) pass(by time.Duration) {
	for i := range h.marks {
		h.marks[i].Age += store.Duration(by)
	}
}

// note adds the revision of this moment, if the newest mark is old enough for another. A revision that is older than a mark
// is of another past: whatever was known is worth nothing then.
func (h *history) note(now store.Revision, keep time.Duration) {
	n := len(h.marks)
	if n > 0 && h.marks[n-1].Revision > now {
		h.marks, n = nil, 0
	}
	if n > 0 && (h.marks[n-1].Revision == now || h.marks[n-1].Age.D() < keep/marksEach) {
		return
	}
	if n == mostMarks {
		h.marks = slices.Delete(h.marks, 1, 2) // the oldest says for how long nobody has compacted
	}
	h.marks = append(h.marks, store.Mark{Revision: now})
}

// record is what is written of it: in whole seconds, rather too young than too old.
func (h *history) record() []store.Mark {
	out := slices.Clone(h.marks)
	for i := range out {
		out[i].Age = store.Duration(out[i].Age.D().Truncate(time.Second))
	}
	return out
}

// gone drops the oldest mark: etcd keeps it no more.
func (h *history) gone() { h.marks = slices.Delete(h.marks, 0, 1) }

// oldest is the mark that etcd may still keep.
func (h *history) oldest() (store.Mark, bool) {
	if len(h.marks) == 0 {
		return store.Mark{}, false
	}
	return h.marks[0], true
}

// due is what to compact, given that etcd still keeps the oldest mark: nothing, unless that ought to be gone for some time already. So
// whoever else compacts, at the latest as we do, is never overtaken, and of several shards one does the work of all.
func (h *history) due(keep time.Duration) (before store.Revision, due bool) {
	if len(h.marks) == 0 || h.marks[0].Age.D() < keep+keep/lateBy {
		return 0, false
	}
	for _, m := range h.marks {
		if m.Age.D() < keep {
			break
		}
		before = m.Revision
	}
	return before, before > 1
}
