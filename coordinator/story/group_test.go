package story

import (
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/leasehold/leasehold/store"
)

// TestExplained checks that blocked work is left out where the rest of the story explains it, and
// only there.
func TestExplained(t *testing.T) {
	all := []store.Blocked{
		{Kind: store.BlockedByStorm, Rule: "SAFE-2"},
		{Kind: store.BlockedByBlamedTemplate, Rule: "FLAP-5"},
		{Kind: store.BlockedByGivenUpSlot, Rule: "FLAP-3"},
		{Kind: store.BlockedByRoll, Work: store.WorkRebalance, Rule: "REC-17"},
		{Kind: store.BlockedByDamage, Rule: "SAFE-15", Instance: "a"},
		{Kind: store.BlockedByBudget, Rule: "ROLL-1", Turn: true},
		{Kind: store.BlockedByBudget, Rule: "HEAL-2"},
	}
	for name, test := range map[string]struct {
		status store.Status
		left   []string
	}{
		"nothing explains it": {
			store.Status{}, []string{"SAFE-2", "FLAP-5", "FLAP-3", "REC-17", "SAFE-15", "HEAL-2"},
		},
		"a storm": {
			store.Status{Storm: &store.Storm{}}, []string{"FLAP-5", "FLAP-3", "REC-17", "SAFE-15", "HEAL-2"},
		},
		"a storm that is over": {
			store.Status{Storm: &store.Storm{Ended: "calm"}},
			[]string{"SAFE-2", "FLAP-5", "FLAP-3", "REC-17", "SAFE-15", "HEAL-2"},
		},
		"a stopped roll": {
			store.Status{Rollout: &store.Rollout{Blamed: "it fails"}},
			[]string{"SAFE-2", "FLAP-3", "REC-17", "SAFE-15", "HEAL-2"},
		},
		"a slot that is given up": {
			store.Status{Errored: 1}, []string{"SAFE-2", "FLAP-5", "REC-17", "SAFE-15", "HEAL-2"},
		},
		"an uneven spread": {
			store.Status{Uneven: "a 3, b 1"}, []string{"SAFE-2", "FLAP-5", "FLAP-3", "SAFE-15", "HEAL-2"},
		},
		"lost records": {
			store.Status{Damaged: []store.Damaged{
				{What: store.DamageLost, Instance: "a"}, {What: store.DamageLost, Instance: "b"},
			}},
			[]string{"SAFE-2", "FLAP-5", "FLAP-3", "REC-17", "HEAL-2"},
		},
	} {
		test.status.Blocked = all
		g := Of(test.status)
		var left []string
		for _, b := range g.Blocked {
			left = append(left, b.Rule)
		}
		if !slices.Equal(left, test.left) {
			t.Errorf("%s: %q is left, want %q", name, left, test.left)
		}
		if len(g.Turns) != 1 || g.Turns[0].Rule != "ROLL-1" {
			t.Errorf("%s: %+v waits for its turn", name, g.Turns)
		}
	}
}

// A loss is acknowledged once it blocks nothing any more.
func TestAcknowledgedLoss(t *testing.T) {
	lost := []store.Damaged{{What: store.DamageLost, Instance: "a"}}
	blocked := []store.Blocked{{Kind: store.BlockedByDamage, Rule: "SAFE-15", Instance: "a"}}
	for _, c := range []struct {
		status       store.Status
		acknowledged bool
	}{
		{store.Status{}, false},
		{store.Status{Damaged: lost, Blocked: blocked}, false},
		{store.Status{Damaged: lost}, true},
	} {
		if g := Of(c.status); g.Acknowledged != c.acknowledged {
			t.Errorf("%+v: acknowledged is %t", c.status, g.Acknowledged)
		}
	}
}

// TestRoll checks in which state a roll is told.
func TestRoll(t *testing.T) {
	opportunistic := &store.Group{Rollout: store.RolloutSpec{Strategy: store.StrategyOpportunistic}}
	for name, test := range map[string]struct {
		status   store.Status
		told     bool
		state    RollState
		outdated int
	}{
		"none":        {store.Status{Outdated: 2}, false, Rolling, 2},
		"in progress": {store.Status{Outdated: 2, Rollout: &store.Rollout{}}, true, Rolling, 0},
		"stalled":     {store.Status{Rollout: &store.Rollout{Stalled: "x"}}, true, Stalled, 0},
		"stopped":     {store.Status{Rollout: &store.Rollout{Stalled: "x", Blamed: "y"}}, true, Stopped, 0},
		"opportunistic": {
			store.Status{Outdated: 2, Rollout: &store.Rollout{}, Accepted: opportunistic},
			false,
			Rolling, 2,
		},
		"opportunistic and stopped": {
			store.Status{Rollout: &store.Rollout{Blamed: "y"}, Accepted: opportunistic},
			true,
			Stopped, 0,
		},
	} {
		g := Of(test.status)
		if (g.Roll != nil) != test.told || g.Outdated != test.outdated {
			t.Errorf("%s: %+v, %d outdated", name, g.Roll, g.Outdated)
		}
		if g.Roll != nil && (g.Roll.State != test.state || g.NeedsAttention() != (test.state != Rolling)) {
			t.Errorf("%s: state %d, needs attention %t", name, g.Roll.State, g.NeedsAttention())
		}
	}
}

// TestCounts checks that what is stuck counts once, and the worst verdict comes first.
func TestCounts(t *testing.T) {
	g := Of(store.Status{
		Phases:   map[store.Phase]int{store.Running: 5, store.Checking: 2, store.Booting: 1, store.Finished: 1},
		Verdicts: map[store.Verdict]int{store.Live: 5, store.Stuck: 2, store.Lost: 1, store.Unborn: 1},
	})
	if want := []VerdictCount{{store.Lost, 1}, {store.Stuck, 2}}; !slices.Equal(g.Verdicts, want) {
		t.Errorf("verdicts: %v, want %v", g.Verdicts, want)
	}
	if want := []PhaseCount{{store.Booting, 1}}; !slices.Equal(g.Phases, want) {
		t.Errorf("phases: %v, want %v", g.Phases, want)
	}
}

// A number from outside that is missing is a problem as soon as its source was asked in vain, and
// none before.
//
// proves AUTO-2, DAY-3
func TestAMissingNumberIsAProblem(t *testing.T) {
	for _, c := range []struct {
		number store.ScaleNumber
		shown  bool
	}{
		{store.ScaleNumber{Metric: "queue", Old: true, Why: "unreachable: connection refused"}, true},
		{store.ScaleNumber{Metric: "queue", Old: true, Why: query.NotAsked}, false},
		{store.ScaleNumber{Metric: "queue", Why: "unreachable: connection refused"}, false}, // the last one counts still
		{store.ScaleNumber{Metric: "queue"}, false},
		{store.ScaleNumber{Metric: "cpu", Of: 3}, false},
	} {
		p := scaleProblem("web", store.Status{
			Accepted: &store.Group{Scale: &store.ScaleSpec{Max: 9}}, Scale: &store.Scale{Numbers: []store.ScaleNumber{c.number}},
		})
		if (p != nil) != c.shown {
			t.Errorf("%+v: %+v", c.number, p)
		} else if p != nil && !strings.Contains(p.What, "cannot follow queue, which gives no number: unreachable: connection refused") {
			t.Errorf("it says %q", p.What)
		}
	}
}
