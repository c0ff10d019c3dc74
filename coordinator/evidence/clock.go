package evidence

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
)

// comparedAfter is how long the other replicas may take to compare their clocks with the leader's
// after that was set: they take the smallest difference of a minute.
const comparedAfter = 2 * time.Minute

// ownClock notices that the leader's clock was set. Until the others have compared theirs with it,
// they say that no clock differs.
type ownClock struct {
	looked bool
	ahead  time.Duration // how far the time of day was ahead of the time gone when they agreed last
	set    time.Duration // when that was found to differ
	by     time.Duration // by how much; 0: it was not
}

// look returns by how much the clock was set shortly before, given the time of day and how much
// time has gone, which no setting changes.
func (k *ownClock) look(day time.Time, gone time.Duration) time.Duration {
	ahead := time.Duration(day.UnixNano()) - gone
	if moved := (ahead - k.ahead).Abs(); !k.looked {
		k.looked, k.ahead = true, ahead
	} else if moved >= plan.ClocksApart {
		k.ahead, k.set, k.by = ahead, gone, moved
	}
	if gone-k.set >= comparedAfter {
		k.by = 0
	}
	return k.by
}
