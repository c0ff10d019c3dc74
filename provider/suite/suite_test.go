package suite_test

import (
	"testing"

	"github.com/leasehold/leasehold/provider/suite"
)

// proves PROV-1: a promise that was not played is never reported as proved
func TestAPromiseThatIsNone(t *testing.T) {
	if r := suite.Check(t.Context(), suite.Harness{}, "NoSuchPromise"); r.Outcome != suite.NotProved {
		t.Errorf("%s %q", r.Outcome, r.Why)
	}
}
