package store_test

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

// Groups that share a budget have one instance down at most, unless the shard says otherwise.
//
// proves REC-18
func TestLimitOfASharedBudget(t *testing.T) {
	settings := store.ShardSettings{BudgetGroups: "shop:3,still:0"}
	for budget, want := range map[string]int{"shop": 3, "still": 0, "other": 1} {
		if got := settings.BudgetOf(budget); got != want {
			t.Errorf("%s: %d may be down, want %d", budget, got, want)
		}
	}
	if got := (store.ShardSettings{}).BudgetOf("shop"); got != 1 {
		t.Errorf("%d may be down where nothing is set, want 1", got)
	}
}
