package review

import (
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

// spreadOf sums samples up. A percentile is the smallest time that so many did not exceed.
func spreadOf(samples []sample) Spread {
	if len(samples) == 0 {
		return Spread{}
	}
	slices.SortStableFunc(samples, func(a, b sample) int { return int(a.took - b.took) })
	at := func(percent int) store.Duration {
		return store.Duration(samples[(len(samples)*percent+99)/100-1].took)
	}
	last := samples[len(samples)-1]
	return Spread{
		Times: len(samples), P50: at(50), P95: at(95), Worst: store.Duration(last.took), Instance: last.instance,
	}
}
