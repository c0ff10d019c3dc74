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
		{targets: []store.ScaleTarget{
			{Metric: "cpu", Value: 60}, {Metric: "memory", Value: 100}, {Metric: "network", Value: 0.001},
		}},
		{targets: []store.ScaleTarget{
			{From: "cpu", Value: 1e-6}, {From: "queue", Value: 1e12, Per: "instance"}, {Metric: "cpu", Value: 60},
		}},
		{
			targets: []store.ScaleTarget{{From: "queue", Value: 5, Per: "group"}},
			edit:    func(g *store.Group) { g.Scale.Min = new(0) },
		},
		{
			[]store.ScaleTarget{{From: "queue", Value: 5, Per: "instance"}, {Metric: "cpu", Value: 60}},
			func(g *store.Group) { g.Scale.Min = new(0) },
			"scale.min: 0: must be 1 to scale.max, or 0 with a target from outside for the group (AUTO-1)",
		},
		{
			[]store.ScaleTarget{{From: "queue", Metric: "cpu", Value: 60}},
			nil,
			`scale.targets[0].metric: "cpu": must be "cpu", "memory" or "network", or left out with from (AUTO-1)`,
		},
		{
			[]store.ScaleTarget{{From: "../queue", Value: 60}},
			nil,
			`scale.targets[0].from: "../queue": must be a name of at most 40 of a-z, 0-9 and -, beginning with a letter ` +
				`(AUTO-1)`,
		},
		{
			[]store.ScaleTarget{{Metric: "cpu", Value: 60, Per: "group"}},
			nil,
			`scale.targets[0].per: "group": must be "group" or "instance", with from alone (AUTO-1)`,
		},
		{
			[]store.ScaleTarget{{From: "queue", Value: 6}, {From: "queue", Value: 7}},
			nil,
			`scale.targets[1].from: "queue": must be another metric than scale.targets[0] has (AUTO-1)`,
		},
		{targets: []store.ScaleTarget{{Metric: "cpu", Value: 1}, {Metric: "network", Value: 1e6}}},
		{nil, nil, "scale.targets: 0 targets: must be 1 to 10 targets (AUTO-1)"},
		{
			[]store.ScaleTarget{{Metric: "disk", Value: 60}},
			nil, `scale.targets[0].metric: "disk": must be "cpu", "memory" or "network", or left out with from (AUTO-1)`,
		},
		{
			[]store.ScaleTarget{{Metric: "memory", Value: 60}, {Metric: "cpu", Value: 0}},
			nil,
			"scale.targets[1].value: 0: must be 1 to 100 for cpu and memory, " +
				"0.001 to 1000000 for network, 0.000001 to 1e12 from outside (AUTO-1)",
		},
		{
			[]store.ScaleTarget{{Metric: "memory", Value: 100.5}},
			nil,
			"scale.targets[0].value: 100.5: must be 1 to 100 for cpu and memory, " +
				"0.001 to 1000000 for network, 0.000001 to 1e12 from outside (AUTO-1)",
		},
		{
			[]store.ScaleTarget{{Metric: "cpu", Value: 60}, {Metric: "cpu", Value: 70}},
			nil, `scale.targets[1].metric: "cpu": must be another metric than scale.targets[0] has (AUTO-1)`,
		},
		{
			[]store.ScaleTarget{{Metric: "cpu", Value: 60}},
			func(g *store.Group) { g.Size = 11 }, "size: 11: must be 2 to 10, the bounds of scale, or 0 (AUTO-1)",
		},
		{
			[]store.ScaleTarget{{Metric: "cpu", Value: 60}},
			func(g *store.Group) { g.Size = 1 }, "size: 1: must be 2 to 10, the bounds of scale, or 0 (AUTO-1)",
		},
		{
			[]store.ScaleTarget{{Metric: "cpu", Value: 60}},
			func(g *store.Group) { g.Lifecycle = store.LifecycleTask },
			"scale: a task: must be left out: a task ends, and has no load to follow (AUTO-1)",
		},
		{
			[]store.ScaleTarget{{Metric: "cpu", Value: 60}},
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
