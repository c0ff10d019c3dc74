package story

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A restart of a host in order disturbs the others once or twice: that is no reason to look at
// disks. Often is.
//
// proves SAFE-1
func TestARestartIsNoReasonToLookAtDisks(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for times, disks := range map[int]bool{1: false, 2: false, 3: true, 40: true} {
		found := conditionOf(store.Replica{
			ID: "a", Disturbances: times,
			Last: &store.Disturbance{At: now.Add(-time.Second), What: "etcd changed its leader"},
		}, now)
		if len(found) != 1 || strings.Contains(found[0].Next.String(), "disks") != disks {
			t.Errorf("%d times: %+v", times, found)
		}
	}
}
