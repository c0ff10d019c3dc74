package evidence

import (
	"testing"
	"time"
)

// A leader whose clock is set knows it at once: for as long as the others have not compared theirs
// with it, the clocks count as apart, so that no window opens and no scheduled drill begins.
//
// proves SAFE-13, DAY-6
func TestTheLeadersOwnClockIsSet(t *testing.T) {
	day := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var k ownClock
	for _, step := range []struct {
		gone, off, want time.Duration
	}{
		{0, 0, 0},
		{time.Minute, 20 * time.Second, 0},
		{2 * time.Minute, time.Hour, time.Hour},
		{3 * time.Minute, time.Hour, time.Hour},
		{3*time.Minute + 59*time.Second, time.Hour, time.Hour},
		{4 * time.Minute, time.Hour, 0}, // the others say it now, if it is wrong
		{5 * time.Minute, 0, time.Hour}, // set right, which they know no sooner
		{7 * time.Minute, 0, 0},
		{8 * time.Minute, 20 * time.Second, 0},
		{9 * time.Minute, 40 * time.Second, 40 * time.Second}, // in two steps
	} {
		if got := k.measure(day.Add(step.gone+step.off), step.gone); got != step.want {
			t.Errorf("after %s, %s ahead: %s, want %s", step.gone, step.off, got, step.want)
		}
	}
}
