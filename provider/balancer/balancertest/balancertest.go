package balancertest

import (
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/provider/balancer/suite"
)

// Run plays the whole suite as subtests. What is not proved fails unless it is expected, by the name of
// the promise.
func Run(t *testing.T, h suite.Harness, expectUnproved ...string) {
	for _, name := range expectUnproved {
		if !slices.Contains(suite.Promises(), name) {
			t.Errorf("there is no promise %s", name)
		}
	}
	for _, promise := range suite.Promises() {
		t.Run(promise, func(t *testing.T) {
			r := suite.Check(t.Context(), h, promise)
			expected := slices.Contains(expectUnproved, promise)
			why := strings.Join(r.Why, "\n")
			switch {
			case r.Outcome == suite.Failed:
				t.Error(why)
			case r.Outcome == suite.NotProved && !expected:
				t.Errorf("not proved, and not expected to be: %s", why)
			case r.Outcome == suite.Proved && expected:
				t.Error("proved: do not expect it to be unproved any more")
			}
		})
	}
}
