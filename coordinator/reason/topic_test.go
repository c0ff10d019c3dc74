package reason

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

// Blocked work is counted by what holds it, whatever its rule: what a rule holds may have several
// reasons. proves OBS-2
func TestBlockedWorkIsCountedByWhatHoldsIt(t *testing.T) {
	want := map[string][]store.BlockedKind{
		"storm":  {store.BlockedByStorm, store.BlockedByStormEnd, store.BlockedByStormProbe},
		"budget": {store.BlockedByBudget, store.BlockedByMaxCreating, store.BlockedByReplacement},
		"flapping": {
			store.BlockedByFlapping, store.BlockedByGivenUpSlot, store.BlockedByBlamedTemplate, store.BlockedByNewDoom,
		},
		"operator": {
			store.BlockedByHold, store.BlockedByPause, store.BlockedByProtection, store.BlockedByFreeze, store.BlockedNotStarted,
		},
		"provider": {store.BlockedByProvider, store.BlockedByRefusal},
		"other":    {store.BlockedByDamage, store.BlockedByWindow, store.BlockedByCanary},
	}
	for holds, kinds := range want {
		for _, kind := range kinds {
			if got := HeldBy(&store.Blocked{Kind: kind, Work: store.WorkReplace}); got != holds {
				t.Errorf("%s is counted as %s, want %s", kind, got, holds)
			}
		}
	}
}
