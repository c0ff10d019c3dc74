package coordinator

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/store"
	_ "github.com/leasehold/leasehold/tests/tier" // properties draw from one seed every day
)

// What was younger than it is to be kept is never compacted under any leader, and without others it
// goes soon after.
//
// proves SAFE-13 for the age of history
func TestHistoryIsNeverYoungerThanItIsTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keep := rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, 24 * time.Hour}).Draw(t, "keep")
		now, rev := time.Duration(0), store.Revision(1)
		written := map[store.Revision]time.Duration{} // since when a revision was the newest
		var h history
		var compacted store.Revision
		uncounted := time.Duration(0) // since the oldest mark was made, at most
		for range rapid.IntRange(50, 400).Draw(t, "steps") {
			step := keep / 400 * time.Duration(rapid.IntRange(1, 20).Draw(t, "step"))
			now += step
			// another takes up what was written, and counts no time between
			if rapid.IntRange(0, 9).Draw(t, "leader") == 0 {
				h = history{marks: h.record()}
				uncounted += step
			} else {
				h.pass(step)
			}
			rev += store.Revision(rapid.IntRange(0, 3).Draw(t, "writes"))
			if _, known := written[rev]; !known {
				written[rev] = now
			}
			h.note(rev, keep)
			for m, known := h.oldest(); known && m.Revision < compacted; m, known = h.oldest() {
				h.gone()
			}
			before, due := h.due(keep)
			if !due {
				continue
			}
			if age := now - written[before]; age < keep {
				t.Fatalf("revision %d is compacted when it is %s old, keep is %s", before, age, keep)
			}
			if before < compacted {
				t.Fatalf("compacted before %d, after %d", before, compacted)
			}
			compacted = before
		}
		if m, known := h.oldest(); known && now-written[m.Revision] > 2*keep+uncounted {
			t.Errorf("history of %s is kept", m.Age)
		}
		if len(h.marks) > maxMarks {
			t.Errorf("%d marks", len(h.marks))
		}
	})
}

func TestHistoryOfAnotherPastIsForgotten(t *testing.T) {
	h := history{marks: []store.Mark{
		{Revision: 10, Age: store.Duration(2 * time.Hour)},
		{Revision: 20, Age: store.Duration(time.Hour)},
	}}
	h.note(15, time.Hour)
	if before, due := h.due(time.Hour); due || len(h.marks) != 1 {
		t.Errorf("%d is due, of %v", before, h.marks)
	}
}

func TestHistoryThatCannotBeCompactedTakesNoRoom(t *testing.T) {
	var h history
	for rev := range store.Revision(10 * maxMarks) {
		h.note(rev+1, time.Hour)
		h.pass(5 * time.Minute)
	}
	if m, _ := h.oldest(); len(h.marks) > maxMarks || m.Revision != 1 {
		t.Errorf("%d marks, the oldest at %d", len(h.marks), m.Revision)
	}
}
