package review

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// What the journal says of a drill: each step when it happens, in the slots that were drilled, and
// who else failed.
//
// proves DAY-6
func TestSeenOfDrill(t *testing.T) {
	taken := entry(0, "web-0-a", store.JournalEntry{
		Rule: RuleDrill, Facts: []store.Fact{
			{Kind: store.FactRequest, Name: "r"}, {Kind: store.FactInstance, Name: "web-1-a"},
		},
	})
	halt := func(after time.Duration, id string) store.JournalEntry {
		return entry(after, id, store.JournalEntry{
			Rule: RuleDrill, Kind: store.EntryCall, Facts: []store.Fact{{Kind: store.FactRequest, Name: "r"}},
		})
	}
	entries := []store.JournalEntry{taken}
	if d := SeenOfDrill(entries, "r"); len(d.Instances) != 2 || d.Over() {
		t.Errorf("taken: %+v", d)
	}
	entries = append(entries, halt(time.Second, "web-0-a"), halt(2*time.Second, "web-1-a"))
	entries = append(entries, death(3*time.Second, "web-0-a", "web-0-b")...)
	entries = append(entries, verdict(10*time.Second, "web-2-a", store.Unhealthy))
	d := SeenOfDrill(entries, "r")
	if d.Over() || !slices.Equal(d.Others, []string{"web-2-a"}) {
		t.Errorf("half: %+v", d)
	}
	want := DrilledSeen{
		Instance: "web-0-a", Ended: at(time.Second), Verdict: store.Dead, Seen: at(5 * time.Second),
		Replacement: "web-0-b", Replaced: at(6 * time.Second), Served: at(23 * time.Second),
	}
	if d.Instances[0] != want {
		t.Errorf("got %+v\nwant %+v", d.Instances[0], want)
	}
	entries = append(entries, death(4*time.Second, "web-1-a", "web-1-b")...)
	if d := SeenOfDrill(entries, "r"); !d.Over() || len(d.Others) != 1 {
		t.Errorf("over: %+v", d)
	}
	if d := SeenOfDrill(entries, "another"); len(d.Instances) > 0 || d.Over() {
		t.Errorf("of another order: %+v", d)
	}
	refused := store.JournalEntry{
		At: at(0), Group: "web", Rule: "REC-16", Kind: store.EntryRefusal, Why: "too small",
		Facts: []store.Fact{{Kind: store.FactRequest, Name: "r", By: "ada"}},
	}
	if d := SeenOfDrill([]store.JournalEntry{refused}, "r"); d.Refused != "too small" || !d.Over() {
		t.Errorf("refused: %+v", d)
	}
}
