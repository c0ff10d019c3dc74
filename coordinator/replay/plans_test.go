package replay

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A replay makes few plans: of a group that follows load one for each minute, and what its changes
// take; of a group of one size hardly any. A plan too many for each number, as for the numbers that
// the planner itself has written, would make a month take as much longer.
//
// proves AUTO-4
func TestPlansOfADay(t *testing.T) {
	const span = 24 * time.Hour
	for scaled, most := range map[bool]int{true: 110, false: 30} {
		in, groups := month(span, 50, scaled)
		groups = groups[:3]
		names := map[string]bool{}
		for _, g := range groups {
			names[g.Name] = true
		}
		p, err := run(t.Context(), record(in, names), groups, nil, store.DefaultShardSettings(), 1, func(time.Duration) {})
		if err != nil {
			t.Fatal(err)
		}
		if each := p.plans / len(groups) / int(span/time.Hour); each > most {
			t.Errorf("scaled %t: %d plans of a group in an hour, want at most %d", scaled, each, most)
		} else {
			t.Logf("scaled %t: %d plans of a group in an hour", scaled, each)
		}
	}
}
