package review

import (
	"cmp"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Spread is how long something took.
type Spread struct {
	Times    int            `json:"times"`
	P50      store.Duration `json:"p50,omitempty"`
	P95      store.Duration `json:"p95,omitempty"`
	Worst    store.Duration `json:"worst,omitempty"`
	Instance string         `json:"instance,omitempty"` // of Worst
}

// sample is one of the times.
type sample struct {
	took     time.Duration
	instance string
}

// weighted are times with a weight each.
type weighted struct {
	times int
	all   []weight
}

type weight struct {
	sample
	counts float64
}

func (w *weighted) samples(all []sample) {
	w.times += len(all)
	for _, s := range all {
		w.all = append(w.all, weight{s, 1})
	}
}

// day adds what is kept of a day. The longest time is the last.
func (w *weighted) day(s store.DaySpread) {
	w.times += s.Times
	for i, took := range s.Took {
		one := weight{sample{took: took.D()}, float64(s.Times) / float64(len(s.Took))}
		if i == len(s.Took)-1 {
			one.instance = s.Instance
		}
		w.all = append(w.all, one)
	}
}

func (w *weighted) sort() {
	slices.SortStableFunc(w.all, func(a, b weight) int { return cmp.Compare(a.took, b.took) })
}

// spread sums the times up. A percentile is the smallest time that so many did not exceed.
func (w *weighted) spread() Spread {
	if len(w.all) == 0 {
		return Spread{}
	}
	w.sort()
	total := 0.0
	for _, one := range w.all {
		total += one.counts
	}
	at := func(percent float64) store.Duration {
		sum := 0.0
		for _, one := range w.all {
			if sum += one.counts; sum >= total*percent/100-1e-9 {
				return store.Duration(one.took)
			}
		}
		return store.Duration(w.all[len(w.all)-1].took)
	}
	last := w.all[len(w.all)-1]
	return Spread{
		Times: w.times, P50: at(50), P95: at(95), Worst: store.Duration(last.took), Instance: last.instance,
	}
}

// maxTook is how many times are kept of what happened on a day.
const maxTook = 21

// dayOf keeps some of the samples in even steps, the shortest and the longest among them.
func dayOf(samples []sample) store.DaySpread {
	if len(samples) == 0 {
		return store.DaySpread{}
	}
	var w weighted
	w.samples(samples)
	w.sort()
	n := min(maxTook, len(w.all))
	out := store.DaySpread{Times: len(samples), Instance: w.all[len(w.all)-1].instance}
	for i := range n {
		at := len(w.all) - 1
		if n > 1 {
			at = i * (len(w.all) - 1) / (n - 1)
		}
		out.Took = append(out.Took, store.Duration(w.all[at].took.Round(100*time.Millisecond)))
	}
	return out
}
