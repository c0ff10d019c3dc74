package store_test

import (
	"encoding/json"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A number is stored as a number, a percentage as a text, and both are read again as what they are.
//
// proves REC-18
func TestAmountsAreStored(t *testing.T) {
	for _, test := range []struct {
		a              store.Amount
		stored, reads  string
		up, down, size int
	}{
		{0, `0`, "0", 0, 0, 10},
		{1, `1`, "1", 1, 1, 10},
		{25, `25`, "25", 25, 25, 10},
		{store.Percent(1), `"1%"`, "1%", 1, 0, 10},
		{store.Percent(25), `"25%"`, "25%", 3, 2, 10},
		{store.Percent(100), `"100%"`, "100%", 10, 10, 10},
	} {
		data, err := json.Marshal(test.a)
		if err != nil || string(data) != test.stored || test.a.String() != test.reads {
			t.Errorf("%s is stored as %s: %v", test.a, data, err)
		}
		var back store.Amount
		if err := json.Unmarshal(data, &back); err != nil || back != test.a {
			t.Errorf("%s comes back as %s: %v", test.a, back, err)
		}
		if up, down := test.a.Up(test.size), test.a.Down(test.size); up != test.up || down != test.down {
			t.Errorf("%s of %d is %d, or %d", test.a, test.size, up, down)
		}
	}
	var a store.Amount
	if err := a.UnmarshalText([]byte("2147483648")); err == nil {
		t.Errorf("a number that no computer of ours can count is read as %s", a)
	}
}

// A percentage that is more than one instance is not cut to one where no machine may be made beyond
// size.
//
// proves REC-18
func TestPercentageWithoutExpansion(t *testing.T) {
	for percent, want := range map[int]int{1: 1, 5: 1, 50: 10, 100: 20} {
		g := web()
		g.Size, g.Budget.MaxExpansion, g.Budget.MaxUnavailable = 20, 0, new(store.Percent(percent))
		if got := g.MaxUnavailable(false); got != want {
			t.Errorf("%d%%: %d, want %d", percent, got, want)
		}
	}
}
