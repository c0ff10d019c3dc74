package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// An analysis names a source and at least one bound; each source once.
//
// proves ROLL-5, SEC-7
func TestAnalyses(t *testing.T) {
	for _, test := range []struct {
		all  []store.Analysis
		want string // of the first error
	}{
		{all: []store.Analysis{
			{From: "errors", Max: new(0.01)}, {From: "p95", Min: new(0.0), Max: new(0.0), For: store.Duration(time.Hour)},
		}},
		{
			[]store.Analysis{{From: "errors"}},
			"rollout.analysis[0].max: none: must be not less than min; max, min or both (ROLL-5)",
		},
		{
			[]store.Analysis{{From: "errors", Min: new(2.0), Max: new(1.0)}},
			"rollout.analysis[0].max: 1: must be not less than min; max, min or both (ROLL-5)",
		},
		{
			[]store.Analysis{{From: "http://x", Max: new(1.0)}},
			"rollout.analysis[0].from: http://x: must be a name of at most 40 of a-z, 0-9 and -, " +
				"beginning with a letter (ROLL-5)",
		},
		{
			[]store.Analysis{{From: "errors", Max: new(1.0), For: store.Duration(2 * time.Hour)}},
			"rollout.analysis[0].for: 2h0m0s: must be 0s to 1h (ROLL-5)",
		},
		{
			[]store.Analysis{{From: "errors", Max: new(1.0)}, {From: "errors", Min: new(0.0)}},
			"rollout.analysis: 2 analyses: must be at most 10 with different sources (ROLL-5)",
		},
	} {
		g := store.DefaultGroup()
		g.Name, g.Provider, g.Rollout.Analysis = "web", "process", test.all
		g.Workload.Run = []string{"./web"}
		g.Complete()
		got := ""
		if err := g.Validate(); err != nil {
			got, _, _ = strings.Cut(err.Error(), "\n")
		}
		if got != test.want {
			t.Errorf("%+v: %q, want %q", test.all, got, test.want)
		}
		if len(test.all) > 1 && test.want == "" && !slices.Equal(g.Sources(), []string{"errors", "p95"}) {
			t.Errorf("its sources are %v", g.Sources())
		}
	}
	a := store.Analysis{Min: new(1.0), Max: new(2.0)}
	for value, holds := range map[float64]bool{0.9: false, 1: true, 2: true, 2.1: false} {
		if a.Holds(value) != holds {
			t.Errorf("%v is within %s: %t", value, a.Bounds(), !holds)
		}
	}
}
