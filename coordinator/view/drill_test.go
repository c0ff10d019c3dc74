package view_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/coordinator/view"
	"github.com/leasehold/leasehold/store"
)

// A drill has an outcome when it is over, and only if it is known what was promised. One that was
// refused is listed. What was read is read again when the journal has more.
//
// proves DAY-6
func TestOutcomesOfDrills(t *testing.T) {
	inShard(t, func(x *shown) {
		slot, begun := 0, x.now.Add(-time.Minute)
		told := func(after time.Duration, e store.JournalEntry) {
			x.t.Helper()
			e.Instance, e.Slot = "web-0-a", &slot
			x.tell(begun.Add(after), e)
		}
		shows := func(when string, want ...review.Outcome) []view.Drill {
			t.Helper()
			all, read := x.views.Drills("web")
			if !read || len(all) != len(want) {
				t.Fatalf("%s: %t, %+v", when, read, all)
			}
			for i := range all {
				judged := want[i] == review.OutcomeKept || want[i] == review.OutcomeBroken
				if all[i].Outcome != want[i] || judged != (len(all[i].Promises) > 0) {
					t.Errorf("%s: %s, %+v, want %s", when, all[i].Outcome, all[i].Promises, want[i])
				}
			}
			return all
		}
		shows("before")
		told(0, store.JournalEntry{
			Rule: review.RuleDrill, Facts: []store.Fact{{Kind: store.FactRequest, Name: "r", Text: string(store.DrillAgent)}},
		})
		x.status(func(st *store.Status) { st.Accepted = &x.group })
		shows("begun", review.OutcomeOpen)
		told(time.Second, store.JournalEntry{Kind: store.EntryVerdict, Verdict: store.Suspect})
		told(2*time.Second, store.JournalEntry{Kind: store.EntryVerdict, Verdict: store.Live})
		shows("back", review.OutcomeKept)
		told(3*time.Second, store.JournalEntry{
			Rule: "REC-16", Kind: store.EntryRefusal, Why: "too small",
			Facts: []store.Fact{{Kind: store.FactRequest, Name: "r2", By: "ada", Text: store.RequestDrill.Drill()}},
		})
		all := shows("refused", review.OutcomeRefused, review.OutcomeKept)
		if d := all[0]; d.Refused != "too small" || d.By != "ada" || !d.At.Equal(begun.Add(3*time.Second)) {
			t.Errorf("%+v", d)
		}
		x.put(x.keys.Slot("web", 0), store.Slot{
			Schema: store.Schema, Group: "web", Number: 0, Failures: []store.Failure{{Instance: "web-0-a"}},
		})
		shows("blamed", review.OutcomeRefused, review.OutcomeBroken)
		x.status(func(st *store.Status) { st.Accepted = nil })
		shows("unknown", review.OutcomeRefused, review.OutcomeUnknown)
	})
}
