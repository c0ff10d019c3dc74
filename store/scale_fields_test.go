package store_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// What scale cannot be is refused with its value and with what is allowed. Values at the very
// bounds are allowed.
//
// proves AUTO-1, AUTO-2, AUTO-4
func TestWhatScaleMaySay(t *testing.T) {
	const values = "must be 1 to 100 for cpu and memory, 0.001 to 1000000 for network, " +
		"0.000001 to 1e12 from outside (AUTO-1)"
	target := func(target store.ScaleTarget) func(*store.Group) {
		return func(g *store.Group) { g.Scale.Targets = []store.ScaleTarget{target} }
	}
	many := func(n int) func(*store.Group) {
		return func(g *store.Group) {
			g.Scale.Targets = nil
			for i := range n {
				g.Scale.Targets = append(g.Scale.Targets, store.ScaleTarget{From: fmt.Sprintf("queue-%d", i), Value: 1})
			}
		}
	}
	bounds := func(least, most, size int) func(*store.Group) {
		return func(g *store.Group) { g.Scale.Min, g.Scale.Max, g.Size = &least, most, size }
	}
	for _, test := range []struct {
		edit func(*store.Group) // of a group with 2 to 10 instances
		want string
	}{
		{bounds(2, 10, 0), ""},
		{bounds(2, 10, 2), ""},
		{bounds(2, 10, 5), ""},
		{bounds(2, 10, 10), ""},
		{bounds(3, 3, 3), ""},
		{bounds(3, 3, 4), "size: 4: must be 3 to 3, the bounds of scale, or 0 (AUTO-1)"},
		{bounds(2, 1, 5), "scale.min: 2: must be 1 to scale.max, or 0 with a target from outside for the group (AUTO-1)"},
		{bounds(2, 0, 5), "scale.max: 0: must be 1 to 100000 (AUTO-1)"},
		{many(10), ""},
		{many(11), "scale.targets: 11 targets: must be 1 to 10 targets (AUTO-1)"},
		{
			target(store.ScaleTarget{From: "queue", Per: "machine", Value: 1}),
			`scale.targets[0].per: "machine": must be "group" or "instance", with from alone (AUTO-1)`,
		},
		{target(store.ScaleTarget{From: "queue"}), "scale.targets[0].value: 0: " + values},
		{target(store.ScaleTarget{From: "queue", Value: 1e12 + 1}), "scale.targets[0].value: 1.000000000001e+12: " + values},
		{target(store.ScaleTarget{Metric: "network"}), "scale.targets[0].value: 0: " + values},
		{target(store.ScaleTarget{Metric: "network", Value: 1e6 + 1}), "scale.targets[0].value: 1.000001e+06: " + values},
		{
			func(g *store.Group) { g.Scale.Warmup = new(store.Duration(61 * time.Minute)) },
			"scale.warmup: 1h1m0s: must be 0s to 1h0m0s (AUTO-1)",
		},
		{func(g *store.Group) { g.Scale.Tolerance = 51 }, "scale.tolerance: 51: must be 1 to 50 (AUTO-2)"},
		{func(g *store.Group) { g.Scale.Tolerance = -1 }, "scale.tolerance: -1: must be 1 to 50 (AUTO-2)"},
		{
			func(g *store.Group) { g.Scale.Up.Step = store.Percent(101) },
			"scale.up.step: 101%: must be 1 to 10000, or 1% to 100% (AUTO-2)",
		},
		{
			func(g *store.Group) { g.Scale.Down.Step = 10001 },
			"scale.down.step: 10001: must be 1 to 10000, or 1% to 100% (AUTO-2)",
		},
		{func(g *store.Group) { g.Scale.Mode = "watch" }, `scale.mode: "watch": must be "act" or "advise" (AUTO-4)`},
	} {
		g := web()
		g.Scale = &store.ScaleSpec{Min: new(2), Max: 10, Targets: []store.ScaleTarget{{Metric: "cpu", Value: 60}}}
		test.edit(&g)
		if got := refusalOf(g); got != test.want {
			t.Errorf("size %d, %+v: got %q, want %q", g.Size, g.Scale, got, test.want)
		}
	}
}

// What is left out of scale has the defaults of the documentation; what is said stays.
//
// proves AUTO-1, AUTO-2, AUTO-4
func TestDefaultsOfScale(t *testing.T) {
	want := store.ScaleSpec{
		Min: new(1), Max: 9, Warmup: new(store.Duration(2 * time.Minute)), Tolerance: 10, Mode: "act",
		Up: store.ScaleUp{Step: store.Percent(100), Every: store.Duration(30 * time.Second)},
		Down: store.ScaleDown{
			Window: new(store.Duration(5 * time.Minute)), Step: store.Percent(25), Every: store.Duration(time.Minute),
		},
	}
	if got := (store.ScaleSpec{Max: 9}).Complete(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	said := store.ScaleSpec{
		Min: new(3), Max: 9, Warmup: new(store.Duration(0)), Tolerance: 5, Mode: "advise",
		Up:   store.ScaleUp{Window: store.Duration(time.Second), Step: 1, Every: store.Duration(time.Second)},
		Down: store.ScaleDown{Window: new(store.Duration(0)), Step: 2, Every: store.Duration(time.Hour)},
	}
	if got := said.Complete(); !reflect.DeepEqual(got, said) {
		t.Errorf("got %+v, want %+v", got, said)
	}
}

// The sources of numbers from outside are what targets and analyses name, each once.
//
// proves SEC-7
func TestSourcesOfAGroup(t *testing.T) {
	targets := &store.ScaleSpec{Targets: []store.ScaleTarget{{Metric: "cpu"}, {From: "queue"}, {From: "errors"}}}
	analyses := []store.Analysis{{From: "errors"}, {From: "p95"}, {From: "errors"}}
	for _, test := range []struct {
		scale    *store.ScaleSpec
		analyses []store.Analysis
		want     []string
	}{
		{nil, nil, nil},
		{targets, nil, []string{"queue", "errors"}},
		{nil, analyses, []string{"errors", "p95"}},
		{targets, analyses, []string{"queue", "errors", "p95"}},
	} {
		g := store.Group{Scale: test.scale}
		g.Rollout.Analysis = test.analyses
		if got := g.Sources(); !slices.Equal(got, test.want) {
			t.Errorf("%+v, %+v: got %q, want %q", test.scale, test.analyses, got, test.want)
		}
	}
}

// Memory alone never lets a group shrink, which is worth a warning. Beside another target, or a
// schedule alone, it is none.
//
// proves AUTO-1
func TestWarningOfMemoryAlone(t *testing.T) {
	memory, cpu := store.ScaleTarget{Metric: "memory"}, store.ScaleTarget{Metric: "cpu"}
	queue := store.ScaleTarget{From: "queue"}
	for _, test := range []struct {
		targets []store.ScaleTarget
		warned  bool
	}{
		{nil, false},
		{[]store.ScaleTarget{memory}, true},
		{[]store.ScaleTarget{cpu}, false},
		{[]store.ScaleTarget{memory, cpu}, false},
		{[]store.ScaleTarget{memory, queue}, false},
	} {
		g := web()
		g.Scale = &store.ScaleSpec{Max: 9, Targets: test.targets}
		warned := slices.ContainsFunc(g.Warnings(), func(s string) bool { return strings.Contains(s, "grow only") })
		if warned != test.warned {
			t.Errorf("%+v: warned is %t: %q", test.targets, warned, g.Warnings())
		}
	}
}

// A size that an operator chose without an end holds until the schedule changes something after
// that; with an end it holds until then, whatever the schedule does.
//
// proves AUTO-3
func TestHowLongAChosenSizeHolds(t *testing.T) {
	chosen := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	now := chosen.Add(time.Hour)
	hold := &store.ScaleHold{Size: 3, At: chosen}
	until := &store.ScaleHold{Size: 3, At: chosen, Until: now.Add(time.Second)}
	scheduled := &store.ScaleSpec{Max: 9, Schedule: []store.ScaleChange{{Cron: "0 8 * * *"}}}
	since := func(at time.Time) *store.Scale {
		return &store.Scale{Size: 5, Scheduled: &store.Scheduled{Since: at, Min: 1, Max: 9}}
	}
	later := since(chosen.Add(time.Second))
	for name, test := range map[string]struct {
		hold   *store.ScaleHold
		scale  *store.ScaleSpec
		status *store.Scale
		want   bool
	}{
		"no size was chosen":                    {nil, scheduled, later, false},
		"load has chosen nothing":               {hold, scheduled, nil, true},
		"the schedule has put nothing in force": {hold, scheduled, &store.Scale{Size: 5}, true},
		"a change before":                       {hold, scheduled, since(chosen.Add(-time.Second)), true},
		"a change at that time":                 {hold, scheduled, since(chosen), true},
		"a change after":                        {hold, scheduled, later, false},
		"a change after, with an end":           {until, scheduled, later, true},
		"a change after, without a schedule":    {hold, &store.ScaleSpec{Max: 9}, later, true},
		"a change after, without scale":         {hold, nil, later, true},
	} {
		g := store.Group{Scale: test.scale}
		g.ScaleHold = test.hold
		if got := g.HeldAt(test.status, now); got != test.want {
			t.Errorf("%s: it is held: %t", name, got)
		}
	}
}
