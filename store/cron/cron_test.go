package cron_test

import (
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store/cron"
)

// Planner and pages ask the same expression at once, of months of different lengths.
//
// proves AUTO-3
func TestTimesAreAskedAtOnce(t *testing.T) {
	const text = "0 9 29-31 * *"
	var all sync.WaitGroup
	for month := range 12 {
		all.Go(func() {
			times, err := cron.Parse(text)
			if err != nil {
				t.Error(err)
				return
			}
			from := time.Date(2026, time.Month(month+1), 28, 12, 0, 0, 0, time.UTC)
			want := times.After(from)
			for range 2000 {
				if got := times.After(from); !got.Equal(want) {
					t.Errorf("after %v: %v, and %v before", from, got, want)
					return
				}
			}
			if d := want.Day(); want.IsZero() || d < 29 || want.Hour() != 9 {
				t.Errorf("after %v: %v", from, want)
			}
		})
	}
	all.Wait()
}
