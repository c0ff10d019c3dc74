package scale

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Load is what is known of the load of a group now.
type Load struct {
	OnTheWay int       // instances that start or warm up, and slots that are empty
	Left     float64   // instances that left, as far as the numbers of the others do not include their load yet
	Metrics  []Numbers // of each target of the spec, in order
	Grew     bool      // the last change of size was a growth
}

// Numbers is what the instances report of one metric.
type Numbers struct {
	Sum     float64 // of the warm ones
	Warm    int     // instances with a fresh number
	Missing int     // instances without a usable number: lost, unhealthy, or the number is old
	// Warming are the numbers of instances that are healthy and warm up. For growth each counts as
	// it is, and at most as much as a warm one: load that moves to them stays in the sum, and what
	// their own start costs does not look like load.
	Warming []float64
	// Leaving is the load of instances that drain: it may move to the others when they go. It counts
	// against shrinking alone.
	Leaving float64
	// Outside is what is known of a number from outside. Of one for each instance, Sum is it times
	// Warm.
	Outside Outside
}

// Outside is what is known of a number from outside.
type Outside struct {
	Known bool // and not too old
	Value float64
	Age   time.Duration // since the source was asked for it; 0: it has never answered
	Why   string        // why the source did not answer the last time
}

// Wish is the size that load asks for.
type Wish struct {
	Size int
	// Unknown: no target has a number, and Size is the present size. Starting: the reason is that no
	// instance is warm yet.
	Unknown, Starting bool
	// Settling is the size below which it must not shrink yet: it counts the load of those that left
	// as well.
	Settling int
	// Silent: a target that could keep the group from shrinking has no number.
	Silent  bool
	Numbers []store.ScaleNumber
}

// WishOf is the size that load asks for, without bounds. The largest that a target asks for wins.
func WishOf(spec *store.ScaleSpec, size int, load Load) Wish {
	if len(spec.Targets) == 0 {
		return Wish{Size: size} // a schedule alone changes it
	}
	w, growsOnly := Wish{Unknown: true, Starting: true}, true
	none := spec.Least() == 0 && slices.ContainsFunc(spec.Targets, store.ScaleTarget.ForGroup)
	for i, t := range spec.Targets {
		n := load.Metrics[i]
		number := numberOf(t, n)
		w.Starting = w.Starting && number.Of == 0 && t.From == ""
		switch {
		case t.From != "" && !n.Outside.Known:
			w.Silent, none = true, false
		case t.ForGroup():
			number.Wish = asksTogether(bandOf(spec, load), size, n.Outside.Value/t.Value)
			if w.Unknown || number.Wish > w.Size {
				w.Size = number.Wish
			}
			w.Unknown, growsOnly, none = false, false, none && number.Wish == 0
		case 2*n.Warm <= number.Of: // not from most of them
			w.Silent = w.Silent || t.Metric != store.MetricMemory
		default:
			number.Wish = asks(t, bandOf(spec, load), size, n, load.OnTheWay, 0)
			if w.Unknown || number.Wish > w.Size {
				w.Size = number.Wish
			}
			w.Settling = max(w.Settling, asks(t, bandOf(spec, load), size, n, load.OnTheWay, load.Left))
			w.Unknown, growsOnly = false, growsOnly && t.Metric == store.MetricMemory
		}
		w.Numbers = append(w.Numbers, number)
	}
	switch {
	case w.Unknown:
		w.Size = size
	case none && w.Size == 1:
		w.Size, w.Starting = 0, false // an idle machine has some load, too
	default:
		w.Starting = false
	}
	if w.Size < size && growsOnly {
		w.Size = size // so far as memory alone tells
	}
	if load.Left == 0 {
		w.Settling = w.Size
	}
	return w
}

// numberOf is what is shown of a target.
func numberOf(t store.ScaleTarget, n Numbers) store.ScaleNumber {
	number := store.ScaleNumber{Metric: t.Metric, Target: t.Value, Fresh: n.Warm, Of: n.Warm + n.Missing}
	if t.From != "" {
		number.Metric, number.Per = t.From, cmp.Or(t.Per, store.PerGroup)
		number.Value, number.Old, number.Why = rounded(n.Outside.Value), !n.Outside.Known, n.Outside.Why
		number.Age = store.Duration(n.Outside.Age.Truncate(time.Second))
		if t.ForGroup() {
			number.Fresh, number.Of = 0, 0
		}
	} else if n.Warm > 0 {
		number.Value = rounded(n.Sum / float64(n.Warm))
	}
	return number
}

// band is how far load may be from the target before the size changes, as a part of the target.
type band struct{ settled, up, down float64 }

// bandOf returns the band. A group grows above half the tolerance, or above all of it while
// instances are on the way or missing: the other numbers are less certain then. A group that has
// grown shrinks only to a size at which load is below the target by all of it: noise does not turn
// it. A group that has shrunk goes on down to the target.
func bandOf(spec *store.ScaleSpec, load Load) band {
	tolerated := float64(spec.Tolerance) / 100
	b := band{settled: tolerated / 2, up: tolerated}
	if load.Grew {
		b.down = tolerated
	}
	return b
}

// asksTogether is the size that a number for the whole group asks for. It does not depend on who
// can be heard: instances that start and those that are lost have their part in the size.
func asksTogether(b band, size int, needs float64) int {
	if needs > float64(size)*(1+b.settled) {
		return needed(needs, 1)
	}
	return min(size, needed(needs, 1-b.down))
}

// asks is the size that one target asks for.
func asks(t store.ScaleTarget, b band, size int, n Numbers, onTheWay int, left float64) int {
	unknown, up := n.Missing+onTheWay, b.settled
	if unknown > 0 {
		up = b.up
	}
	mean := n.Sum / float64(n.Warm)
	if mean > t.Value*(1+up) {
		sum := n.Sum
		for _, value := range n.Warming {
			sum += min(value, mean)
		}
		return max(size, needed(sum, t.Value))
	}
	sum := n.Sum + n.Leaving + left*mean + float64(unknown)*t.Value
	return min(size, needed(sum, t.Value*(1-b.down)))
}

// needed is how many instances carry a load with the target each. A hair more than a whole number
// comes of rounding.
func needed(sum, target float64) int {
	return int(math.Ceil(min(max(0, sum/target-1e-6), store.MaxSize)))
}

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
