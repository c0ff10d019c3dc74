package story

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

func TestFirstUpcomingIsTheFirstToCome(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	upcoming := []Upcoming{
		{At: noon.Add(time.Hour), What: "late"},
		{At: noon.Add(-time.Second), What: "past"},
		{At: noon.Add(time.Minute), What: "soon"},
		{At: noon, What: "now"},
	}
	if l := FirstUpcoming(upcoming, noon); l == nil || l.What != "soon" {
		t.Errorf("the next look is %v, want soon", l)
	}
	if l := FirstUpcoming(upcoming[:2], noon.Add(2*time.Hour)); l != nil {
		t.Errorf("the next look is %v, and all are past", l)
	}
}

// A roll that waits for its canaries, for a zone, for a window or for the end of a freeze is
// decided at a time that is known.
//
// proves ROLL-5, ROLL-6, ROLL-8
func TestWaitingRollHasANextDecision(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	rests := &store.Timer{Start: noon, For: store.Duration(time.Minute)}
	held := func(kind store.BlockedKind, opens time.Time) store.Status {
		return store.Status{Rollout: &store.Rollout{}, Blocked: []store.Blocked{{
			Rule: "ROLL-6", Kind: kind, Work: store.WorkRoll, Turn: true, Of: store.BlockedFacts{Opens: opens},
		}}}
	}
	for name, test := range map[string]struct {
		st   store.Status
		want *Upcoming
	}{
		"canaries": {
			store.Status{Rollout: &store.Rollout{Canary: 1, Rests: rests}},
			&Upcoming{noon.Add(time.Minute), "the roll goes on, if its canaries stay healthy", "ROLL-5"},
		},
		"canaries in grace": {
			store.Status{Rollout: &store.Rollout{Canary: 1, Rests: rests, GraceUntil: noon.Add(time.Hour)}},
			&Upcoming{noon.Add(time.Hour), "the roll goes on, if its canaries stay healthy", "ROLL-5"},
		},
		"zone": {
			store.Status{Rollout: &store.Rollout{Zone: "a", Rests: rests}},
			&Upcoming{noon.Add(time.Minute), "the roll goes on, if zone a stays healthy", "ROLL-8"},
		},
		"window": {
			held(store.BlockedByWindow, noon.Add(time.Hour)),
			&Upcoming{noon.Add(time.Hour), "the roll may begin", "ROLL-6"},
		},
		"freeze": {
			held(store.BlockedByFreeze, noon.Add(time.Hour)),
			&Upcoming{noon.Add(time.Hour), "the roll may begin", "ROLL-6"},
		},
		"no window allows it": {held(store.BlockedByWindow, time.Time{}), nil},
	} {
		got := FirstUpcoming(StatusUpcoming(test.st), noon)
		if (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
