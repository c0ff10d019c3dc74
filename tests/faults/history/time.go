package history

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Time is a moment by the machine's monotonic clock, which is the same for all processes and goes
// on whatever becomes of wall clocks.
type Time time.Duration

// Now is the time. It does not go through package time, whose clock some programs here have wrong
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
func (t Time) Add(d time.Duration) Time { return t + Time(d) }
