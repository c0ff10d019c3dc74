package reason

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A headline says what happened, and nothing that a workload, a check or a provider printed.
//
// proves WEB-3
func TestHeadline(t *testing.T) {
	const printed = "printed"
	for want, e := range map[string]store.JournalEntry{
		"web-1-a: is unhealthy, replacement web-1-b requested": {
			Instance: "web-1-a", Rule: "HEAL-2", Verdict: store.Unhealthy, Replacement: "web-1-b",
			Effect: store.Effect{Kind: store.EffectReplaced, Instance: "web-1-b"},
			Cause:  store.Cause{Kind: store.CauseUnhealthy, Text: printed}, Why: printed,
		},
		"web-1-a: replacement web-1-b requested": {
			Instance: "web-1-a", Rule: "ROLL-1", Replacement: "web-1-b", Cause: store.Cause{Kind: store.CauseOutdated},
		},
		"web-1-a: deleting, replaced by web-1-b": {
			Instance: "web-1-a", To: store.Deleting, Verdict: store.Dead, Replacement: "web-1-b",
		},
		"web-1-a: draining, as web-1-b is healthy in its place": {
			Instance: "web-1-a", Rule: "HEAL-2", To: store.Draining,
			Cause: store.Cause{Kind: store.CauseUnhealthy, Heir: "web-1-b", Text: printed},
		},
		"web-1-a: updated live": {Instance: "web-1-a", Effect: store.Effect{Kind: store.EffectUpdatedLive}},
		"web-1-a: a change of the instance": {
			Instance: "web-1-a", Effect: store.Effect{Kind: store.EffectAddress, Name: printed}, What: printed,
		},
		"web: roll stopped": {Group: "web", What: "roll stopped"},
	} {
		if got := Headline(&e); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
