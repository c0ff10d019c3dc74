package coordinator

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

const (
	maxMarks  = 64 // kept at most, however long compaction fails
	marksEach = 12 // marks per retention time
	// history may be older by this part of the retention before this shard compacts: others had
	// their chance
	lateBy = 6
)

// history is what a leader knows of the age of etcd's revisions: marks, oldest first. It has no
// clock.
type history struct{ marks []store.Mark }

// pass ages all marks.
func (h *history) pass(by time.Duration) {
	for i := range h.marks {
		h.marks[i].Age += store.Duration(by)
	}
}

// note adds the present revision, if the newest mark is old enough for another. A revision older
// than a mark belongs to another past: all marks are worthless then.
func (h *history) note(now store.Revision, keep time.Duration) {
	n := len(h.marks)
	if n > 0 && h.marks[n-1].Revision > now {
		h.marks, n = nil, 0
	}
	if n > 0 && (h.marks[n-1].Revision == now || h.marks[n-1].Age.D() < keep/marksEach) {
		return
	}
	if n == maxMarks {
		h.marks = slices.Delete(h.marks, 1, 2) // keep the oldest: it shows how long nothing was compacted
	}
	h.marks = append(h.marks, store.Mark{Revision: now})
}

// record returns what is written of it: in whole seconds, rounded to the younger side.
func (h *history) record() []store.Mark {
	out := slices.Clone(h.marks)
	for i := range out {
		out[i].Age = store.Duration(out[i].Age.D().Truncate(time.Second))
	}
	return out
}

// gone drops the oldest mark: etcd no longer keeps it.
func (h *history) gone() { h.marks = slices.Delete(h.marks, 0, 1) }

// oldest returns the mark that etcd may still keep.
func (h *history) oldest() (store.Mark, bool) {
	if len(h.marks) == 0 {
		return store.Mark{}, false
	}
	return h.marks[0], true
}

// due returns the revision to compact, given that etcd still keeps the oldest mark: none, unless
// that mark should have been compacted some time ago. So another compactor that is at most as slow
// is never overtaken, and of several shards one compacts for all.
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
