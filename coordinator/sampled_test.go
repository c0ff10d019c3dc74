//go:build race

package coordinator_test

import (
	"testing"
	"time"
)

// What the race detector sees of whole_test.go: every tenth boundary, and fewer failures.

const everyTenth = 10

func TestLeaderDiesAtSomeBoundaries(t *testing.T) {
	everyBoundary(t, everyTenth, ofALife, lifeOfAGroup)
}

func TestGroupIsDeletedWhenItsLeaderDiedAtSomeBoundaries(t *testing.T) {
	everyBoundary(t, everyTenth, ofADeletion, deletedMeanwhile)
}

func TestLeaderDiesAtSomeBoundariesOfARestart(t *testing.T) {
	everyBoundary(t, everyTenth, ofARestart, restartedInPlace)
}

func TestHundredsOfFailuresAreNoSwarmOfCalls(t *testing.T) { manyFail(t, 200, 50, 20, 2*time.Second) }
