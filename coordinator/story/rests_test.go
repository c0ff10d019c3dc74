package story

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// What a roll that rests waits for: the time, and a grace that lasts longer.
//
// proves ROLL-5, ROLL-8, SAFE-13
func TestWhenARestingRollGoesOn(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rests := &store.Timer{Start: now.Add(-9 * time.Minute), For: store.Duration(10 * time.Minute)}
	for name, c := range map[string]struct {
		roll store.Rollout
		want string
	}{
		"canaries": {
			store.Rollout{Canary: 1, Canaries: []int{0}, Rests: rests},
			"canaries: 1 of 1, slot 0, goes on in 1m if all stay healthy (ROLL-5)",
		},
		"canaries, in a grace": {
			store.Rollout{Canary: 1, Canaries: []int{0}, Rests: rests, GraceUntil: now.Add(90 * time.Second)},
			"canaries: 1 of 1, slot 0, goes on in 1m30s, when a grace ends (SAFE-1), if all stay healthy (ROLL-5)",
		},
		"canaries, for a promotion": {
			store.Rollout{Canary: 1, Canaries: []int{0}}, "canaries: 1 of 1, slot 0 (ROLL-5)",
		},
		"a zone, in a grace": {
			store.Rollout{Zone: "a", Rests: rests, GraceUntil: now.Add(90 * time.Second)},
			"zone a of the roll, goes on in 1m30s, when a grace ends (SAFE-1), if all stay healthy (ROLL-8)",
		},
	} {
		if got := stageLines(&c.roll, now); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
