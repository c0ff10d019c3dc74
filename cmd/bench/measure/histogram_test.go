package measure

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A histogram says what sorting all durations would, within 2 %.
func TestHistogramAgainstSorting(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	draw := rand.New(rand.NewPCG(seed, 1))
	var one, other, both Histogram
	var all []time.Duration
	for i := range 20_000 {
		d := time.Duration(draw.ExpFloat64() * float64(time.Millisecond) * float64(1+draw.IntN(5000)))
		all = append(all, d)
		both.Add(d)
		if i%2 == 0 {
			one.Add(d)
		} else {
			other.Add(d)
		}
	}
	one.Merge(other)
	slices.Sort(all)
	for _, share := range []float64{0, 0.01, 0.5, 0.9, 0.99, 0.999, 1} {
		want := all[min(len(all)-1, int(share*float64(len(all))))]
		got := both.Quantile(share)
		if diff := (got - want).Abs(); diff > want/50+2*time.Microsecond {
			t.Errorf("quantile %v: %s, want %s", share, got, want)
		}
		if merged := one.Quantile(share); merged != got {
			t.Errorf("quantile %v of two that were merged: %s, of one %s", share, merged, got)
		}
	}
	if both.N != uint64(len(all)) || both.Quantile(1) != all[len(all)-1] {
		t.Errorf("%d counted, the longest %s: want %d and %s", both.N, both.Quantile(1), len(all), all[len(all)-1])
	}
}

func TestHistogramSince(t *testing.T) {
	var h Histogram
	h.Add(time.Second)
	before := h
	before.Counts = slices.Clone(h.Counts)
	for range 10 {
		h.Add(time.Millisecond)
	}
	after := h.Since(before)
	if got := after.Quantile(0.99); after.N != 10 || got > 1100*time.Microsecond {
		t.Errorf("since: %d durations, 99 %% of them within %s: want 10 within a millisecond", after.N, got)
	}
	if longest := after.Quantile(1); longest < time.Millisecond || longest > 1100*time.Microsecond {
		t.Errorf("since: the longest took %s, want a millisecond, not the second that was before", longest)
	}
	if zero := h.Since(Histogram{}); zero.N != h.N || zero.Mean() != h.Mean() || zero.Quantile(1) != time.Second {
		t.Errorf("since the beginning: %d with mean %s, want all %d with %s", zero.N, zero.Mean(), h.N, h.Mean())
	}
	var empty Histogram
	empty.Merge(Histogram{})
	if empty.Quantile(0.5) != 0 || empty.Mean() != 0 {
		t.Error("an empty histogram says something")
	}
}

// Every bucket ends where the next begins.
func TestBuckets(t *testing.T) {
	for i := range buckets - 1 {
		if end := upperOf(i); bucketOf(end) != i || bucketOf(end+time.Microsecond) != i+1 {
			t.Fatalf("bucket %d ends at %s, which is in %d, and the next microsecond in %d", i, end, bucketOf(end),
				bucketOf(end+time.Microsecond))
		}
	}
}
