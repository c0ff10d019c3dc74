package scale

import (
	"math"

	"github.com/leasehold/leasehold/store"
)

// Load is what is known of the load of a group now.
type Load struct {
	OnTheWay int       // instances that start or warm up, and slots that are empty
	Metrics  []Numbers // of each target of the spec, in order
}

// Numbers is what the instances tell of one metric.
type Numbers struct {
	Sum     float64 // of the warm ones
	Warm    int     // instances with a fresh number
	Missing int     // instances that should tell and do not: lost, unhealthy, or their number is old
}

// Wish is the size that load asks for.
type Wish struct {
	Size int
	// Unknown: no target says anything, and Size is the present size. Starting: since no instance is
	// warm yet.
	Unknown, Starting bool
	// Silent: a target that could keep the group from shrinking says nothing.
	Silent  bool
	Numbers []store.ScaleNumber
}

// WishOf is the size that load asks for, without bounds. The largest that a target asks for wins.
func WishOf(spec *store.ScaleSpec, size int, load Load) Wish {
	w, growsOnly := Wish{Unknown: true, Starting: true}, true
	for i, t := range spec.Targets {
		n := load.Metrics[i]
		told := store.ScaleNumber{Metric: t.Metric, Target: t.Value, Fresh: n.Warm, Of: n.Warm + n.Missing}
		if n.Warm > 0 {
			told.Value = rounded(n.Sum / float64(n.Warm))
		}
		w.Starting = w.Starting && told.Of == 0
		switch {
		case 2*n.Warm <= told.Of: // not from most of them
			w.Silent = w.Silent || t.Metric != store.MetricMemory
		default:
			told.Wish = asks(t, spec.Tolerance, size, n, load.OnTheWay)
			if w.Unknown || told.Wish > w.Size {
				w.Size = told.Wish
			}
			w.Unknown, growsOnly = false, growsOnly && t.Metric == store.MetricMemory
		}
		w.Numbers = append(w.Numbers, told)
	}
	if w.Unknown {
		w.Size = size
	} else {
		w.Starting = false
	}
	if w.Size < size && growsOnly {
		w.Size = size // so far as memory alone tells
	}
	return w
}

// asks is the size that one target asks for.
func asks(t store.ScaleTarget, tolerance, size int, n Numbers, onTheWay int) int {
	tolerated := float64(tolerance) / 100
	if n.Sum/float64(n.Warm) > t.Value*(1+tolerated) {
		return max(size, needed(n.Sum, t.Value))
	}
	unknown := n.Missing + onTheWay
	sum, of := n.Sum+float64(unknown)*t.Value, n.Warm+unknown
	if sum/float64(of) < t.Value*(1-tolerated) {
		return min(size, needed(sum, t.Value))
	}
	return size
}

// needed is how many instances carry a load with the target each. A hair more than a whole number
// comes of rounding.
func needed(sum, target float64) int { return int(math.Ceil(sum/target - 1e-6)) }

// rounded is a number as it is shown, with three figures.
func rounded(x float64) float64 {
	if x == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(x)))-2)
	if x = math.Round(x/unit) * unit; unit < 1 { // no digits beyond those
		digits := math.Round(1 / unit)
		return math.Round(x*digits) / digits
	}
	return x
}
