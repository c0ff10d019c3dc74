package plan

import (
	"slices"
	"testing"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// An optional check is reported and judges no instance: neither is it counted where an instance is
// called healthy, nor is it among the evidence where one is called unhealthy.
//
// proves DET-9
func TestOptionalChecksAreNoEvidence(t *testing.T) {
	fine, ill := store.CheckReport{Name: "page", Healthy: true}, store.CheckReport{Name: "page", Why: "timed out"}
	aside := store.CheckReport{Name: "sidecar", Why: "not running", Optional: true}
	for want, checks := range map[string][]store.CheckReport{
		"its agent reports and it has no checks, 0s after it registered": nil,
		"checks 1/1, 0s after it registered":                             {fine},
		"checks 1/1 (and 1 optional failing), 0s after it registered":    {fine, aside},
		"checks 0/0 (and 1 optional failing), 0s after it registered":    {aside},
		"checks 2/2, 0s after it registered": {fine, {
			Name: "sidecar", Healthy: true,
			Optional: true,
		}, fine},
	} {
		if got := reason.Short(passed(checks)); got != want {
			t.Errorf("%v: got %q, want %q", checks, got, want)
		}
	}
	x := newSubject()
	x.Report.Record = store.Report{BootID: "b", Why: "page: timed out", Checks: []store.CheckReport{ill, aside}}
	j := x.judge()
	if j.Verdict != store.Unhealthy || !slices.Contains(reason.Lines(j.Facts), "check page: timed out") {
		t.Errorf("judged %s on %q", j.Verdict, reason.Lines(j.Facts))
	}
	if slices.Contains(reason.Lines(j.Facts), "check sidecar: not running") {
		t.Errorf("an optional check is evidence: %q", reason.Lines(j.Facts))
	}
}

// A failed replacement is judged by its checks, and only a withdrawn creation by the provider's
// answers.
//
// proves REC-15
func TestCounterfactualOfAFailedReplacement(t *testing.T) {
	for verdict, want := range map[store.Verdict]store.Counterfactual{
		store.Unhealthy: store.UnlessChecksPassed, store.Dead: store.UnlessListedRunning, "": store.UnlessProvider,
	} {
		if got := counterfactual("HEAL-13", verdict); got != want {
			t.Errorf("%q: %q, want %q", verdict, got, want)
		}
	}
}
