package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// Each choice that makes something else in the spec useless is warned of, and only that one.
//
// proves ROLL-1, ROLL-6, SPOT-1, SPOT-4, EXP-2, AUTO-1
func TestWarningsOfChoicesWithoutEffect(t *testing.T) {
	none, one := store.Amount(0), store.Amount(1)
	divided := func(g *store.Group) { g.Capacity.Spot, g.Spot.Source = 1, store.NoticeAWS }
	scaled := func(metrics ...string) func(*store.Group) {
		return func(g *store.Group) {
			g.Scale = &store.ScaleSpec{Max: 5}
			for _, m := range metrics {
				g.Scale.Targets = append(g.Scale.Targets, store.ScaleTarget{Metric: m, Value: 50})
			}
		}
	}
	window := func(allow ...string) func(*store.Group) {
		return func(g *store.Group) { g.Windows = []store.Window{{From: "22:00", For: 3600e9, Allow: allow}} }
	}
	all := func(changes ...func(*store.Group)) func(*store.Group) {
		return func(g *store.Group) {
			for _, change := range changes {
				change(g)
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*store.Group)
		want   []string // how each warning begins
	}{
		{"no roll", func(g *store.Group) { g.Budget.Roll.MaxExpansion = &none }, []string{"budget.roll: max_expansion and"}},
		{"rolls in place", func(g *store.Group) {
			g.Budget.MaxUnavailable, g.Budget.Roll.MaxExpansion = &one, &none
		}, nil},
		{"rolls by expansion", func(g *store.Group) { g.Budget.Roll.MaxUnavailable = &none }, nil},
		{"a share of spot machines", divided, nil},
		{"a share of spot machines, no expansion", all(divided, func(g *store.Group) {
			g.Budget.MaxExpansion, g.Heal.Policy = 0, store.HealRestart
		}), []string{
			"budget: max_expansion is 0: no instance expires", "budget: max_expansion is 0: nothing returns to spot",
		}},
		{"a share of spot machines, no expansion for expiry", all(divided, func(g *store.Group) {
			g.Budget.Expiry.MaxExpansion = &none
		}), []string{"budget: max_expansion is 0: no instance expires"}},
		{"a share of spot machines without a source", func(g *store.Group) { g.Capacity.Spot = 1 }, []string{"spot: "}},
		{"a base without a share", func(g *store.Group) { g.Capacity.OnDemandBase = 1 }, []string{"capacity: "}},
		{"a share beyond a base", all(divided, func(g *store.Group) { g.Capacity.OnDemandBase = 1 }), nil},
		{"grows for memory", scaled(store.MetricMemory), []string{"scale: "}},
		{"shrinks for processors", scaled(store.MetricCPU), nil},
		{"shrinks for processors, grows for memory", scaled(store.MetricMemory, store.MetricCPU), nil},
		{"every kind of work has a window", window(), nil},
		{"each kind of work has a window", window(store.PlannedWork...), nil},
		{
			"one kind has none", window(store.PlannedRoll, store.PlannedExpiry, store.PlannedScaleDown),
			[]string{"windows: no window allows rebalance: "},
		},
		{
			"two kinds have none", window(store.PlannedRoll, store.PlannedScaleDown),
			[]string{"windows: no window allows expiry, rebalance: "},
		},
	} {
		g := web()
		c.change(&g)
		g.Complete()
		got := g.Warnings()
		if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
			t.Errorf("%s: warned of %q, want %q", c.name, got, c.want)
		}
	}
}
