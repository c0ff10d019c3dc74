package history

import (
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// Time is a moment of the machine's monotonic clock, which all processes share and which does not
// depend on wall clocks.
type Time time.Duration

// Now returns the present time. It does not use package time, whose clock is wrong in some programs
// on purpose.
func Now() Time {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(fmt.Sprintf("read the monotonic clock: %v", err)) // Linux always has one
	}
	return Time(t.Nano())
}

// Sub is how long after another time this one is.
func (t Time) Sub(earlier Time) time.Duration { return time.Duration(t - earlier) }

// Add is so much later.
// The last of all times is later than none.
func (t Time) Add(d time.Duration) Time {
	if later := t + Time(d); d < 0 || later >= t {
		return later
	}
	return math.MaxInt64
}
