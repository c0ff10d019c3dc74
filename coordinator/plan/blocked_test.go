package plan

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

// TestBlockedHoldsWhatIsShown checks that a count that no text shows is left out of blocked work:
// it would have the status written whenever it changes.
//
// proves REC-10
func TestBlockedHoldsWhatIsShown(t *testing.T) {
	d := draftWith(func(d *draft) { d.spec = &store.Group{} })
	if of := d.healing.claimRoom(&member{Instance: &Instance{}}, bounds{}, 3); of != (store.BlockedFacts{}) {
		t.Errorf("without budgets: %+v", of)
	}
}
