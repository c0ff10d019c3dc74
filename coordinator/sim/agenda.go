package sim

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/leasehold/leasehold/provider/fake"
)

// event is a future event. Events at the same time happen in the order in which they were
// scheduled.
type event struct {
	at      time.Duration // since the world began
	number  uint64
	routine bool // routine, such as lists, which repeats regardless of anything else
	do      func()
}

// agenda is a heap of future events, the earliest on top.
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

// after schedules an event.
func (w *World) after(d time.Duration, do func()) { w.schedule(d, false, do) }

// routinely schedules an event that repeats regularly.
func (w *World) routinely(d time.Duration, do func()) { w.schedule(d, true, do) }

func (w *World) schedule(d time.Duration, routine bool, do func()) {
	w.number++
	if !routine {
		w.business++
	}
	heap.Push(&w.agenda, event{at: w.clock + max(0, d), number: w.number, routine: routine, do: do})
}

// chance is the only source of randomness.
type chance struct{ *rand.Rand }

func newChance(seed uint64) chance { return chance{rand.New(rand.NewPCG(seed, 0x1ea5e401d))} }

// happens returns true with a probability in percent.
func (c chance) happens(percent int) bool { return percent > 0 && c.IntN(100) < percent }

// within returns a random duration in a range.
func (c chance) within(r fake.Range) time.Duration {
	if r.To <= r.From {
		return r.From
	}
	return r.From + c.upTo(r.To-r.From)
}

// upTo returns a random duration from zero to most.
func (c chance) upTo(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return time.Duration(c.Int64N(int64(most) + 1))
}

// Next returns the time of the next event; false if there is none.
func (w *World) Next() (time.Duration, bool) {
	if len(w.agenda) == 0 {
		return 0, false
	}
	return max(w.clock, w.agenda[0].at), true
}
