package store_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Targets are one of each metric, within its bounds; the size that a file begins with is within
// the bounds of scale. What has no load to follow is refused.
//
// proves AUTO-1, AUTO-2
func TestScaleTargets(t *testing.T) {
	for _, test := range []struct {
		targets []store.ScaleTarget
		edit    func(*store.Group)
		want    string // of the first error
	}{
		{targets: []store.ScaleTarget{{"cpu", 60}, {"memory", 100}, {"network", 0.001}}},
		{targets: []store.ScaleTarget{{"cpu", 1}, {"network", 1e6}}},
		{nil, nil, "scale.targets: 0 targets: must be 1 to 10 targets (AUTO-1)"},
		{
			[]store.ScaleTarget{{"disk", 60}},
			nil, `scale.targets[0].metric: "disk": must be "cpu", "memory" or "network" (AUTO-1)`,
		},
		{
			[]store.ScaleTarget{{"memory", 60}, {"cpu", 0}},
			nil, "scale.targets[1].value: 0: must be 1 to 100 for cpu and memory, 0.001 to 1000000 for network (AUTO-1)",
		},
		{
			[]store.ScaleTarget{{"memory", 100.5}},
			nil, "scale.targets[0].value: 100.5: must be 1 to 100 for cpu and memory, 0.001 to 1000000 for network (AUTO-1)",
		},
		{
			[]store.ScaleTarget{{"cpu", 60}, {"cpu", 70}},
			nil, `scale.targets[1].metric: "cpu": must be another metric than scale.targets[0] has (AUTO-1)`,
		},
		{
			[]store.ScaleTarget{{"cpu", 60}},
			func(g *store.Group) { g.Size = 11 }, "size: 11: must be 2 to 10, the bounds of scale, or 0 (AUTO-1)",
		},
		{
			[]store.ScaleTarget{{"cpu", 60}},
			func(g *store.Group) { g.Size = 1 }, "size: 1: must be 2 to 10, the bounds of scale, or 0 (AUTO-1)",
		},
		{
			[]store.ScaleTarget{{"cpu", 60}},
			func(g *store.Group) { g.Lifecycle = store.LifecycleTask },
			"scale: a task: must be left out: a task ends, and has no load to follow (AUTO-1)",
		},
		{
			[]store.ScaleTarget{{"cpu", 60}},
			func(g *store.Group) { g.Provider = store.ProviderNone },
			"scale: provider none: must be left out: nothing makes the machines (AUTO-1)",
		},
	} {
		g := web()
		g.Size, g.Scale = 0, &store.ScaleSpec{Min: new(2), Max: 10, Targets: test.targets}
		if test.edit != nil {
			test.edit(&g)
		}
		g.Complete()
		got := ""
		if err := g.Validate(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%v: got %q, want %q", test.targets, got, test.want)
		}
	}
}

// The size in force is the operator's as long as that holds, then what load chose, within the
// bounds; it is the spec's before load has chosen one, and where load only advises.
//
// proves AUTO-3, AUTO-4, AUTO-5
func TestSizeInForce(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	scale := &store.ScaleSpec{Min: new(2), Max: 10}
	hold := func(until time.Time) *store.ScaleHold { return &store.ScaleHold{Size: 12, Until: until} }
	for name, test := range map[string]struct {
		size   int
		scale  *store.ScaleSpec
		hold   *store.ScaleHold
		chosen *store.Scale
		want   int
	}{
		"no scale":            {5, nil, nil, &store.Scale{Size: 7}, 5},
		"no scale, but held":  {5, nil, hold(time.Time{}), nil, 5},
		"nothing chosen":      {5, scale, nil, nil, 5},
		"nothing said":        {0, scale, nil, nil, 2},
		"chosen":              {5, scale, nil, &store.Scale{Size: 7}, 7},
		"chosen, above max":   {5, scale, nil, &store.Scale{Size: 11}, 10},
		"chosen, below min":   {5, scale, nil, &store.Scale{Size: 1}, 2},
		"held":                {5, scale, hold(time.Time{}), &store.Scale{Size: 7}, 12},
		"held for now":        {5, scale, hold(now.Add(1)), &store.Scale{Size: 7}, 12},
		"held until now":      {5, scale, hold(now), &store.Scale{Size: 7}, 7},
		"advised":             {5, &store.ScaleSpec{Max: 10, Mode: store.ScaleAdvise}, nil, &store.Scale{Size: 7}, 5},
		"advised, and beyond": {15, &store.ScaleSpec{Max: 10, Mode: store.ScaleAdvise}, nil, nil, 15},
	} {
		g := store.Group{Size: test.size, Scale: test.scale}
		g.ScaleHold = test.hold
		if got := g.SizeAt(test.chosen, now); got != test.want {
			t.Errorf("%s: size %d, want %d", name, got, test.want)
		}
	}
}
