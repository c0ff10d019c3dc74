package sim

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/leasehold/leasehold/provider/fake"
)

// event is something that will happen. Events of one time happen in the order in which they were
// noted.
type event struct {
	at      time.Duration // since the world began
	number  uint64
	routine bool // happens again and again whatever goes on, as lists do
	do      func()
}

// agenda is what will happen, the earliest on top.
type agenda []event

func (a agenda) Len() int      { return len(a) }
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a agenda) Less(i, j int) bool {
	if a[i].at != a[j].at {
		return a[i].at < a[j].at
	}
	return a[i].number < a[j].number
}

func (a *agenda) Push(x any) {
	if e, ok := x.(event); ok { // nothing else is ever pushed
		*a = append(*a, e)
	}
}

func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	(*a)[last] = event{}
	*a = (*a)[:last]
	return e
}

// after has something happen after a time.
func (w *World) after(d time.Duration, do func()) { w.schedule(d, false, do) }

// routinely has something happen after a time that happens again and again.
func (w *World) routinely(d time.Duration, do func()) { w.schedule(d, true, do) }

func (w *World) schedule(d time.Duration, routine bool, do func()) {
	w.number++
	if !routine {
		w.business++
	}
	heap.Push(&w.agenda, event{at: w.clock + max(0, d), number: w.number, routine: routine, do: do})
}

// chance is the one source of all that is left open.
type chance struct{ *rand.Rand }

func newChance(seed uint64) chance { return chance{rand.New(rand.NewPCG(seed, 0x1ea5e401d))} }

// happens reports whether something does that does so many times in a hundred.
func (c chance) happens(percent int) bool { return percent > 0 && c.IntN(100) < percent }

// within is a length of time in a range.
func (c chance) within(r fake.Range) time.Duration {
	if r.To <= r.From {
		return r.From
	}
	return r.From + c.upTo(r.To-r.From)
}

// upTo is a length of time from nothing to the one given.
func (c chance) upTo(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return time.Duration(c.Int64N(int64(most) + 1))
}

// Next is when the next event happens; false if there is none.
func (w *World) Next() (time.Duration, bool) {
	if len(w.agenda) == 0 {
		return 0, false
	}
	return max(w.clock, w.agenda[0].at), true
}
