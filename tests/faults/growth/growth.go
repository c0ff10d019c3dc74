package growth

import (
	"fmt"
	"slices"
)

// Allowance is how much higher a series may be at the end: a share of its value, plus a constant.
type Allowance struct {
	Share float64
	More  float64
}

// Series is one number, read repeatedly.
type Series struct {
	Of     string // the process, or whatever else it is of
	What   string
	Unit   Unit
	May    Allowance
	Values []float64 // in the order of time
}

// Least is how many readings it takes for a verdict.
const Least = 12

// Verdict is the result for a series.
type Verdict struct {
	Known  bool    // there were enough readings
	Before float64 // the middle of the readings after warm-up
	After  float64 // the last ones'
	Most   float64 // how high that might have been
	Peak   float64 // the highest of all
}

// Grows reports whether it has grown.
func (v Verdict) Grows() bool { return v.Known && v.After > v.Most }

// Judge judges a series.
func (s Series) Judge() Verdict {
	if len(s.Values) == 0 {
		return Verdict{}
	}
	v := Verdict{Peak: slices.Max(s.Values)}
	if len(s.Values) < Least {
		return v
	}
	warm := s.Values[len(s.Values)/3:]
	third := len(warm) / 3
	v.Known, v.Before, v.After = true, middle(warm[:third]), middle(warm[len(warm)-third:])
	v.Most = v.Before*(1+s.May.Share) + s.May.More
	return v
}

// middle is the median.
func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Tell describes a series that grows.
func (s Series) Tell() string {
	v := s.Judge()
	return fmt.Sprintf("%s of %s grows: %s after warm-up, %s in the end, where at most %s is flat", s.What, s.Of,
		s.Unit.of(v.Before), s.Unit.of(v.After), s.Unit.of(v.Most))
}
