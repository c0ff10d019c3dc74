package plan

import (
	"testing"
	"time"
)

// How long a wish may go without being judged is never most of the window in which it counts.
//
// proves AUTO-2
func TestLapses(t *testing.T) {
	for window, want := range map[time.Duration]time.Duration{
		30 * time.Second: 30 * time.Second, time.Minute: 30 * time.Second, 2 * time.Minute: time.Minute,
		5 * time.Minute: 65 * time.Second, time.Hour: 65 * time.Second,
	} {
		if got := ScaleLapse(window); got != want {
			t.Errorf("in a window of %s: %s, want %s", window, got, want)
		}
	}
}
