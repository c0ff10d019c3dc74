package story

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// The leader's verdict holds for explain and the page as long as status counts it.
func TestWhenAVerdictStands(t *testing.T) {
	told := func(v store.Verdict) *store.JournalEntry { return &store.JournalEntry{Verdict: v, Revision: 10} }
	counts := &store.Status{Verdicts: map[store.Verdict]int{store.Suspect: 1, store.Unhealthy: 1, store.Live: 5}}
	for name, test := range map[string]struct {
		told                    *store.JournalEntry
		status                  *store.Status
		instance, alive, report store.Revision
		want                    bool
	}{
		"suspect":                   {told(store.Suspect), counts, 9, 10, 9, true},
		"a report proves nothing":   {told(store.Suspect), counts, 9, 9, 11, true},
		"its stream is another":     {told(store.Suspect), counts, 9, 11, 9, false},
		"its record is another":     {told(store.Suspect), counts, 11, 9, 9, false},
		"status counts none":        {told(store.Suspect), &store.Status{}, 9, 9, 9, false},
		"live is what records show": {told(store.Live), counts, 9, 9, 9, false},
		"unhealthy":                 {told(store.Unhealthy), counts, 9, 9, 9, true},
		"a newer report is well":    {told(store.Unhealthy), counts, 9, 9, 11, false},
	} {
		if got := Stands(test.told, test.status, test.instance, test.alive, test.report); got != test.want {
			t.Errorf("%s: stands is %t", name, got)
		}
	}
}

// What is said to do about lost records, and about those that are not counted yet, helps.
//
// proves SAFE-15
func TestWhatToDoAboutDamage(t *testing.T) {
	for kind, want := range map[store.BlockedKind]string{
		store.BlockedByDamage:      "leasehold repair",
		store.BlockedByMissingList: "leasehold provider show cloud",
	} {
		b := store.Blocked{Rule: "SAFE-15", Kind: kind, Work: store.WorkAll, Of: store.BlockedFacts{Name: "cloud"}}
		p := heldProblem("web", Blockage{Blocked: b})
		if !strings.HasPrefix(p.Remedies.String(), want) {
			t.Errorf("%s: next is %q", kind, p.Remedies)
		}
	}
}
