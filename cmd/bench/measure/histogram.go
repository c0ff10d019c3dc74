package measure

import (
	"math/bits"
	"time"
)

// There are 64 buckets of equal width between a power of two and the next, in microseconds. Below
// 64 µs each microsecond has its own. So a duration is exact to 1/64 of itself.
const (
	fineBits = 6
	fine     = 1 << fineBits
	octaves  = 36 // beyond 64 µs: over a month
	buckets  = fine + octaves*fine
)

// Histogram counts durations. Its zero value is empty and ready. It is not safe for concurrent use.
// It can be encoded by gob or JSON.
type Histogram struct {
	Counts []uint64 // nil while empty
	N      uint64
	Sum    time.Duration
	Most   time.Duration
}

// Add counts a duration. A negative one, from a clock that was set back, counts as 0.
func (h *Histogram) Add(d time.Duration) {
	if h.Counts == nil {
		h.Counts = make([]uint64, buckets)
	}
	d = max(0, d)
	h.Counts[bucketOf(d)]++
	h.N++
	h.Sum += d
	h.Most = max(h.Most, d)
}

// Merge adds the counts of another histogram.
func (h *Histogram) Merge(o Histogram) {
	if o.N == 0 {
		return
	}
	if h.Counts == nil {
		h.Counts = make([]uint64, buckets)
	}
	for i, n := range o.Counts {
		h.Counts[i] += n
	}
	h.N += o.N
	h.Sum += o.Sum
	h.Most = max(h.Most, o.Most)
}

// Since returns what was added after an earlier copy was made. Its maximum is exact only to 1/64,
// like all values but the histogram's own maximum.
func (h *Histogram) Since(before Histogram) Histogram {
	out := Histogram{Counts: append([]uint64(nil), h.Counts...), N: h.N - before.N, Sum: h.Sum - before.Sum}
	for i, n := range before.Counts {
		out.Counts[i] -= n
	}
	for i, n := range out.Counts {
		if n > 0 {
			out.Most = min(upperOf(i), h.Most)
		}
	}
	return out
}

// Quantile returns a duration that the given share of all does not exceed: 0.5 for the median, 1
// for the maximum. It is 0 if nothing was counted.
func (h *Histogram) Quantile(share float64) time.Duration {
	if h.N == 0 {
		return 0
	}
	if share >= 1 {
		return h.Most
	}
	left := uint64(share * float64(h.N))
	for i, n := range h.Counts {
		if left < n {
			return min(upperOf(i), h.Most)
		}
		left -= n
	}
	return h.Most
}

// Mean returns the mean; 0 if nothing was counted.
func (h *Histogram) Mean() time.Duration {
	if h.N == 0 {
		return 0
	}
	return h.Sum / time.Duration(h.N)
}

func bucketOf(d time.Duration) int {
	us := uint64(d / time.Microsecond)
	if us < fine {
		return int(us)
	}
	octave := bits.Len64(us) - fineBits // from 1 on
	return min(octave*fine+int(us>>(octave-1))-fine, buckets-1)
}

// upperOf returns the longest duration of a bucket, in whole microseconds.
func upperOf(bucket int) time.Duration {
	octave, at := bucket/fine, bucket%fine
	if octave == 0 {
		return time.Duration(at) * time.Microsecond
	}
	return time.Duration((fine+at+1)<<(octave-1)-1) * time.Microsecond
}
