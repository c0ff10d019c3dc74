package memstore_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/store/memstore"
	_ "github.com/leasehold/leasehold/tests/tier" // properties draw from one seed every day
)

func TestManualClockCallsInOrder(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := memstore.NewManualClock(start)
	var calls []string
	due := func(name string, d time.Duration) memstore.Timer {
		return clock.AfterFunc(d, func() {
			if now := clock.Now().Sub(start); now != d {
				t.Errorf("%s is called at %s, want %s", name, now, d)
			}
			calls = append(calls, name)
		})
	}
	due("c", 3*time.Second)
	stopped := due("stopped", 2*time.Second)
	due("b", 2*time.Second)
	due("b2", 2*time.Second)
	due("d", 5*time.Second)
	clock.AfterFunc(time.Second, func() {
		calls = append(calls, "a")
		clock.AfterFunc(time.Second, func() { calls = append(calls, "of a") })
	})
	if !stopped.Stop() || stopped.Stop() {
		t.Error("a timer is stopped once")
	}
	clock.Advance(time.Second / 2)
	if len(calls) != 0 {
		t.Errorf("called too early: %v", calls)
	}
	clock.Advance(4 * time.Second)
	if want := []string{"a", "b", "b2", "of a", "c"}; !slices.Equal(calls, want) {
		t.Errorf("called %v, want %v", calls, want)
	}
	if now := clock.Now().Sub(start); now != 4500*time.Millisecond {
		t.Errorf("the clock shows %s", now)
	}
}

func TestManualClockAnyTimers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := memstore.NewManualClock(time.Time{})
		delays := rapid.SliceOfN(rapid.IntRange(0, 20), 0, 30).Draw(t, "delays")
		stop := rapid.SliceOfN(rapid.Bool(), len(delays), len(delays)).Draw(t, "stop")
		var want, got []int
		timers := make([]memstore.Timer, len(delays))
		for i, d := range delays {
			timers[i] = clock.AfterFunc(time.Duration(d)*time.Second, func() { got = append(got, i) })
			if !stop[i] {
				want = append(want, i)
			}
		}
		for i := range delays {
			if stop[i] && !timers[i].Stop() {
				t.Fatalf("timer %d cannot be stopped", i)
			}
		}
		slices.SortStableFunc(want, func(a, b int) int { return delays[a] - delays[b] })
		for range 21 {
			clock.Advance(time.Second)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("called %v, want %v", got, want)
		}
	})
}
