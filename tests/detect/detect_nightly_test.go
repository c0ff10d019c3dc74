//go:build nightly

package main

import (
	"io"
	"strings"
	"testing"
)

// Every kind of fault ends in the expected verdict and replacement, by the expected rules. make
// bench-detect measures how long that takes.
//
// proves DET-4, DET-7, DET-11, DET-17, HEAL-2
func TestEveryHarm(t *testing.T) {
	t.Parallel()
	progress := &strings.Builder{}
	res, err := measure(t.Context(), short(), progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, progress)
	}
	if len(res.Scenarios) != len(scenarios()) {
		t.Errorf("%d scenarios of %d were played", len(res.Scenarios), len(scenarios()))
	}
	for _, f := range res.Scenarios {
		if len(f.Wrong) > 0 || f.Trials != 1 || f.Replacement == nil {
			t.Errorf("%s: %d trials, wrong: %v", f.Scenario, f.Trials, f.Wrong)
		}
		if f.Verdict != nil && f.Verdict.P50 > f.Replacement.P50 {
			t.Errorf("%s: replaced after %gs, and judged after %gs", f.Scenario, f.Replacement.P50, f.Verdict.P50)
		}
	}
	if err := res.writeTable(io.Discard); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Log(progress)
	}
}
