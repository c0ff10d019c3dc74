package measure

import (
	"math/bits"
	"time"
)

// A bucket is one of 64 of the same width between a power of two and the next, in microseconds;
// below 64 µs each microsecond has its own. So a duration is told within 1/64 of itself.
const (
	fineBits = 6
	fine     = 1 << fineBits
	octaves  = 36 // beyond 64 µs: over a month
	buckets  = fine + octaves*fine
)

// Histogram counts durations. Its zero value is empty and ready. It is not safe for concurrent use.
// It can be sent as it is, by gob or JSON.
type Histogram struct {
	Counts []uint64 // nil as long as it is empty
	N      uint64
	Sum    time.Duration
	Most   time.Duration
}

// Add counts a duration; a negative one, by a clock that went back, as none.
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

// Merge adds all that another has counted.
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

// Since is what was added after an earlier copy of it was made. Its longest is told within 1/64, as
// the rest is, since only the longest of all is kept as it was.
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

// Quantile is a duration that so many of all do not exceed: 0.5 for the median, 1 for the longest.
// It is 0 where nothing was counted.
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

// Mean is 0 where nothing was counted.
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

// upperOf is the last duration that belongs to a bucket, in whole microseconds.
func upperOf(bucket int) time.Duration {
	octave, at := bucket/fine, bucket%fine
	if octave == 0 {
		return time.Duration(at) * time.Microsecond
	}
	return time.Duration((fine+at+1)<<(octave-1)-1) * time.Microsecond
}
