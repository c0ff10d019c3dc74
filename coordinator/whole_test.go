//go:build !race

// The race detector would make these many times slower. It sees a sample of them: sampled_test.go. scripts/test.sh plays what is in this file without it.

package coordinator_test

import (
	"testing"
	"time"
)

// The leader dies at every boundary between a transaction and a provider call, one after the other, while a group comes up, heals,
// shrinks and is deleted. Whatever the boundary, the next leader brings the group to where it was to go with the same
// machines: none is made twice, none is left behind.
//
// proves SAFE-8
// proves ELECT-3
func TestLeaderDiesAtEveryBoundary(t *testing.T) { everyBoundary(t, 1, ofALife, lifeOfAGroup) }

// As above, but while nobody leads the operator deletes the group: what the dead leader was about to make, or has made
// unrecorded, is found and removed.
//
// proves SAFE-8
// proves REC-7
func TestGroupIsDeletedWhenItsLeaderDiedAtEveryBoundary(t *testing.T) {
	everyBoundary(t, 1, ofADeletion, deletedMeanwhile)
}

// The leader dies at every boundary while an instance is restarted, its workload and then its machine. The workload is restarted
// once, and the machine once for the boot that was to end, whoever leads.
//
// proves SAFE-8
// proves HEAL-1
func TestLeaderDiesAtEveryBoundaryOfARestart(t *testing.T) {
	everyBoundary(t, 1, ofARestart, restartedInPlace)
}

// Machines that fail at once are replaced without a swarm of calls: never more at once than the queues let through, however many
// they are, and creations within their rate.
//
// proves REC-9
// proves REC-3
func TestAThousandFailuresAreNoSwarmOfCalls(t *testing.T) { manyFail(t, 1000, 50, 20, 2*time.Second) }
