package reason

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// TestCauses renders every kind of cause: for the journal, and after "because".
func TestCauses(t *testing.T) {
	for _, test := range []struct {
		cause         store.Cause
		short, clause string
	}{
		{store.Cause{Text: "checks 0/1"}, "checks 0/1", "checks 0/1"},
		{store.Cause{Text: "checks 0/1", Heir: "web-1-b"}, "checks 0/1; web-1-b is healthy in its place", "checks 0/1"},
		{store.Cause{Kind: store.CauseOrder, By: "ada"}, "ordered by ada", "it was ordered by ada"},
		{
			store.Cause{Kind: store.CauseOrder, By: "ada", Heir: "web-1-b"},
			"ordered by ada; web-1-b is healthy in its place", "it was ordered by ada",
		},
		{
			store.Cause{Kind: store.CauseOrder, By: "ada", Text: "a long\nbuild"},
			"ordered by ada: a long build", "it was ordered by ada: a long build",
		},
		{store.Cause{Kind: store.CauseOutdated}, "it is outdated", "it is outdated"},
		{store.Cause{Kind: store.CauseOutdated, Text: "vars"}, "outdated: vars", "it is outdated: vars"},
		{
			store.Cause{Kind: store.CauseOutdated, Heir: "web-1-b"},
			"it is outdated; web-1-b is healthy in its place",
			"it is outdated",
		},
		{store.Cause{Kind: store.CauseAge, Text: "it is old"}, "it is old", "it is old"},
		{store.Cause{Kind: store.CauseUnneeded, Text: "b serves"}, "b serves", "it was no longer needed: b serves"},
		{store.Cause{Kind: store.CauseSmaller, Text: "size 2"}, "size 2", "its group got smaller: size 2"},
		{
			store.Cause{Kind: store.CauseGroupEnds, Text: "the group is stopped"},
			"the group is stopped",
			"the group is stopped",
		},
		{store.Cause{Kind: store.CauseCalm, Text: "healthy"}, "healthy", "healthy"},
	} {
		short := Short(test.cause)
		recorded := Recorded(test.cause)
		if clause := Clause(recorded, short); short != test.short || clause != test.clause {
			t.Errorf("%+v: got %q and %q, want %q and %q", test.cause, short, clause, test.short, test.clause)
		}
		e := store.JournalEntry{Why: short, Cause: recorded}
		text, err := json.Marshal(e)
		var back store.JournalEntry
		if err != nil || json.Unmarshal(text, &back) != nil || !reflect.DeepEqual(back.Cause, e.Cause) {
			t.Errorf("%+v comes back as %+v (%v)", e.Cause, back.Cause, err)
		}
		if recorded == (store.Cause{}) && strings.Contains(string(text), "cause") {
			t.Errorf("an empty cause is written: %s", text)
		}
	}
}

// TestCounterfactuals renders every counterfactual as a sentence, with the time only where that
// says more.
func TestCounterfactuals(t *testing.T) {
	for _, c := range store.Counterfactuals {
		text := Otherwise(c, "14:03:41")
		if text == "" || strings.HasSuffix(text, ".") || !strings.Contains(text, " would ") {
			t.Errorf("%s: %q", c, text)
		}
		if strings.Contains(text, "14:03:41") != (c == store.UnlessReported) {
			t.Errorf("%s: %q", c, text)
		}
	}
	if len(otherwise) != len(store.Counterfactuals) {
		t.Errorf("%d counterfactuals, %d rendered", len(store.Counterfactuals), len(otherwise))
	}
	if text := Otherwise(store.UnlessReported, "14:03:41"); text != "it would have been kept if its agent had reported "+
		"before 14:03:41" {
		t.Errorf("got %q", text)
	}
}

// TestOlderEntries reads what a release without kinds wrote.
func TestOlderEntries(t *testing.T) {
	for _, test := range []struct {
		entry            store.JournalEntry
		verdict, refusal bool
		awaits           store.Awaited
		prevented        string
		matters          bool
	}{
		{entry: store.JournalEntry{Rule: "DET-17", What: "lost", Verdict: store.Lost}, verdict: true},
		{
			entry:   store.JournalEntry{Rule: "DET-4", What: "suspect", Verdict: store.Suspect},
			verdict: true, awaits: store.AwaitsList,
		},
		{
			entry:   store.JournalEntry{Rule: "SAFE-1", What: "suspect", Verdict: store.Suspect},
			verdict: true, awaits: store.AwaitsCalm,
		},
		{entry: store.JournalEntry{Rule: "REC-16", What: "order to delete refused", Otherwise: "x"}, refusal: true},
		{
			entry:     store.JournalEntry{Rule: "HEAL-2", What: "deleting", Verdict: store.Lost, Otherwise: "kept, had it"},
			prevented: "kept, had it", matters: true,
		},
		{entry: store.JournalEntry{Rule: "REC-3", What: "requested", Otherwise: "x"}, prevented: "x"},
	} {
		e := &test.entry
		if IsVerdict(e) != test.verdict || IsRefusal(e) != test.refusal || Awaits(e) != test.awaits ||
			Prevented(e, "") != test.prevented || Matters(e) != test.matters {
			t.Errorf("%+v: verdict %t, refusal %t, awaits %q, prevented %q, matters %t", e, IsVerdict(e), IsRefusal(e),
				Awaits(e), Prevented(e, ""), Matters(e))
		}
	}
	if got := Clause(store.Cause{}, "outdated: vars"); got != "outdated: vars" {
		t.Errorf("a text alone becomes %q", got)
	}
}
