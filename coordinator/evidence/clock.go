package evidence

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
)

// comparedAfter is how long the other replicas may take to notice that the leader's clock was set:
// they use the smallest difference within a minute.
const comparedAfter = 2 * time.Minute

// ownClock notices that the leader's clock was set. The other replicas report no difference until
// they have compared their clocks with it again.
type ownClock struct {
	looked bool
	ahead  time.Duration // by how much the time of day was ahead of the elapsed time when they last agreed
	set    time.Duration // when that was found to differ
	by     time.Duration // by how much; 0: it was not
}

// measure returns by how much the clock was set shortly before, from the time of day and the
// elapsed time, which no setting of the clock changes.
func (k *ownClock) measure(day time.Time, gone time.Duration) time.Duration {
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
