package balancertest

import (
	"slices"
	"testing"

	"github.com/leasehold/leasehold/provider/balancer/suite"
	"github.com/leasehold/leasehold/provider/providertest"
)

// Run plays the whole suite as subtests. What is not proved fails unless it is expected, by the
// name of the promise.
func Run(t *testing.T, h suite.Harness, expectUnproved ...string) {
	for _, name := range expectUnproved {
		if !slices.Contains(suite.Promises(), name) {
			t.Errorf("there is no promise %s", name)
		}
	}
	for _, promise := range suite.Promises() {
		t.Run(promise, func(t *testing.T) {
			providertest.Expect(t, suite.Check(t.Context(), h, promise), expectUnproved)
		})
	}
}
