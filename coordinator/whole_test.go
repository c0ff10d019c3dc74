//go:build !race

// The race detector would make these many times slower. It sees a sample of them: sampled_test.go.
// scripts/test.sh plays what is in this file without it.

package coordinator_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/tests/tier"
)

// apart is how far the boundaries that are tried lie apart: every third one by day, each of them at
// night.
var apart = tier.Pick(3, 1)

// The leader dies at every boundary between a transaction and a provider call, one after the other,
// while a group comes up, heals, shrinks and is deleted. Whatever the boundary, the next leader
// brings the group to where it was to go with the same machines: none is made twice, none is left
// behind.
//
// proves SAFE-8
// proves ELECT-3
func TestLeaderDiesAtEveryBoundary(t *testing.T) { everyBoundary(t, apart, ofALife, lifeOfAGroup) }

// As above, but without a leader the operator deletes the group: what the dead leader was about to
// make, or has made unrecorded, is found and removed.
//
// proves SAFE-8
// proves REC-7
func TestGroupIsDeletedWhenItsLeaderDiedAtEveryBoundary(t *testing.T) {
	everyBoundary(t, apart, ofADeletion, deletedMeanwhile)
}

// The leader dies at every boundary while an instance is restarted, its workload and then its
// machine. The workload is restarted once, and the machine once for the boot that was to end,
// under every leader.
//
// proves SAFE-8
// proves HEAL-1
func TestLeaderDiesAtEveryBoundaryOfARestart(t *testing.T) {
	everyBoundary(t, apart, ofARestart, restartedInPlace)
}

// Machines that fail at once are replaced without a swarm of calls: never more at once than the
// queues let through, however many they are, and creations within their rate.
//
// proves REC-9
// proves REC-3
func TestManyFailuresAreNoSwarmOfCalls(t *testing.T) {
	manyFail(t, tier.Pick(300, 1000), 50, 20, 2*time.Second)
}
