//go:build race

package coordinator_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/tests/tier"
)

// What the race detector sees of whole_test.go: some boundaries, and fewer failures.

// apart is how far the boundaries that are tried lie apart.
var apart = tier.Pick(30, 10)

func TestLeaderDiesAtSomeBoundaries(t *testing.T) {
	everyBoundary(t, apart, ofALife, lifeOfAGroup)
}

func TestGroupIsDeletedWhenItsLeaderDiedAtSomeBoundaries(t *testing.T) {
	everyBoundary(t, apart, ofADeletion, deletedMeanwhile)
}

func TestLeaderDiesAtSomeBoundariesOfARestart(t *testing.T) {
	everyBoundary(t, apart, ofARestart, restartedInPlace)
}

func TestSomeFailuresAreNoSwarmOfCalls(t *testing.T) {
	manyFail(t, tier.Pick(100, 200), 50, 20, 2*time.Second)
}
