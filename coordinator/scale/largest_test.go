package scale_test

import (
	"testing"

	"github.com/leasehold/leasehold/coordinator/scale"
	"github.com/leasehold/leasehold/store"
)

// The largest of all targets wins, wherever it stands in the list. A group without targets keeps
// its size: its schedule alone changes it.
//
// proves AUTO-1
func TestTheLargestWishWins(t *testing.T) {
	type of struct {
		target  store.ScaleTarget
		numbers scale.Numbers
	}
	asks := []of{ // for 3, 6 and 9
		{cpu, scale.Numbers{Sum: 145, Warm: 4}},
		{queue, scale.Numbers{Outside: scale.Outside{Known: true, Value: 590}}},
		{network, scale.Numbers{Sum: 17.5, Warm: 4}},
	}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		var load scale.Load
		var targets []store.ScaleTarget
		for i, n := range order {
			targets = append(targets, asks[n].target)
			load.Metrics = append(load.Metrics, asks[n].numbers)
			largest := 0
			for _, n := range order[:i+1] {
				largest = max(largest, 3*(n+1))
			}
			if got := scale.WishOf(spec(1, 100, targets...), 4, load); got.Size != largest || len(got.Numbers) != i+1 {
				t.Errorf("targets %v: %+v, want %d", order[:i+1], got, largest)
			}
		}
	}
	if got := scale.WishOf(spec(1, 100), 7, scale.Load{}); got.Size != 7 || got.Unknown || got.Starting || got.Silent {
		t.Errorf("without targets: %+v", got)
	}
}
