package store

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Each wait is drawn between half a ceiling and all of it. The ceiling doubles up to the most, and
// reset starts over.
func TestBackoff(t *testing.T) {
	const first, most, draws = 8, 50, 2000
	b := backoff{first: first, most: most}
	for range 2 {
		for _, ceiling := range []time.Duration{8, 16, 32, 50, 50} {
			before, low, high := b.next, time.Duration(most), time.Duration(0)
			for range draws { // enough to see both ends
				b.next = before
				d := b.delay()
				low, high = min(low, d), max(high, d)
			}
			if low != ceiling/2 || high != ceiling {
				t.Errorf("waits from %d to %d, want from %d to %d", low, high, ceiling/2, ceiling)
			}
		}
		b.reset()
	}
}

func TestBackoffWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backoff{first: time.Second, most: time.Second}
		begun := time.Now()
		if err := b.wait(t.Context()); err != nil || time.Since(begun) < time.Second/2 ||
			time.Since(begun) > time.Second {
			t.Errorf("waited %s: %v", time.Since(begun), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		begun = time.Now()
		if err := b.wait(ctx); !errors.Is(err, context.Canceled) || time.Since(begun) != 0 {
			t.Errorf("after its context has ended it waited %s: %v", time.Since(begun), err)
		}
	})
}
