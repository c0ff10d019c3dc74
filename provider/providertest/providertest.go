package providertest

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/suite"
)

// Harness is what the suite must be told of a provider. What is left out is not proved.
type Harness = suite.Harness

// Run plays the whole suite as subtests. What is not proved fails unless it is expected, by the name
// of the promise.
func Run(t *testing.T, h Harness, expectUnproved ...string) {
	expected := map[string]bool{}
	for _, name := range expectUnproved {
		expected[name] = true
	}
	for _, name := range suite.Promises() {
		t.Run(name, func(t *testing.T) {
			r := suite.Check(t.Context(), h, name)
			why := strings.Join(r.Why, "\n")
			switch {
			case r.Outcome == suite.Failed:
				t.Error(why)
			case r.Outcome == suite.NotProved && !expected[name]:
				t.Errorf("not proved, and not expected to be: %s", why)
			case r.Outcome == suite.Proved && expected[name]:
				t.Error("proved: do not expect it to be unproved any more")
			}
		})
	}
}

// Request is a plausible request for a machine.
func Request(shard, instance, zone string, t provider.Template) provider.CreateRequest {
	return suite.Request(shard, instance, zone, t)
}
