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

// What ends by itself in a known time is no problem: a record whose machine is gone waits until a
// call before it cannot be under way any more, as after each change of leader.
//
// proves SAFE-8, DAY-3
func TestWaitingForAnEarlierCallIsNoProblem(t *testing.T) {
	b := store.Blocked{Rule: "SAFE-8", Work: store.WorkForget, Kind: store.BlockedByEarlierCalls}
	if Classify(&b); !TakesTurn(&b) {
		t.Error("it is listed as a problem")
	}
}
