package leader

import (
	"container/heap"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// callsAtOnce bounds the concurrent calls of one kind to one provider.
const callsAtOnce = 8

// haltWait is how long the kill of a drill may wait in its queue: the plan that ordered it has
// checked that nothing else was wrong in the group (DAY-6).
const haltWait = 2 * time.Second

// Calls holds the provider calls of a term that are to be made: bounded in number and rate, with
// jitter, the urgent first (REC-9). Its contents follow from the records, so nothing is lost with
// it. Each kind has its own queue, so removals do not wait for the rate of creations; each provider
// has its own queues, so a hanging provider delays no other.
type Calls struct {
	queues      []*queue
	creations   *pace
	rateLimited []*queue // queues whose next call waits for the rate: they take turns (REC-9)
}

// queue holds the calls of one kind to one provider.
type queue struct {
	provider string
	kind     plan.CallKind
	waiting  urgent
	added    int
	running  int
	inLine   bool
}

// NewCalls returns the empty queues of providers. Jitter returns a random time up to the given one.
func NewCalls(providers []string, settings store.ShardSettings, jitter func(most time.Duration) time.Duration) *Calls {
	c := &Calls{creations: newPace(settings, jitter)}
	for _, name := range slices.Sorted(slices.Values(providers)) {
		for _, kind := range []plan.CallKind{
			plan.CallCreate, plan.CallRestart, plan.CallRemove, plan.CallRemoveCopy, plan.CallHalt,
		} {
			c.queues = append(c.queues, &queue{provider: name, kind: kind})
		}
	}
	return c
}

func (c *Calls) queueOf(call plan.Call) *queue {
	for _, q := range c.queues {
		if q.provider == call.Provider && q.kind == call.Kind {
			return q
		}
	}
	return nil
}

// Known reports whether there is a queue for a call: whether its provider is one of this term's.
func (c *Calls) Known(call plan.Call) bool { return c.queueOf(call) != nil }

// Add queues a call. The caller makes sure that none for the same instance waits or runs: calls for
// one ID never overlap (SAFE-8).
func (c *Calls) Add(call plan.Call, now time.Time) {
	q := c.queueOf(call)
	heap.Push(&q.waiting, queued{Call: call, number: q.added, since: now})
	q.added++
}

// Begun is a call that begins.
type Begun struct {
	plan.Call
	Waited time.Duration // in its queue
}

// Begin returns the calls that begin now, and when to ask again if nothing else happens; zero if
// only Add or End can change anything.
func (c *Calls) Begin(now time.Time, settings store.ShardSettings) (begun []Begun, next time.Time) {
	for _, q := range c.queues {
		for q.ready() && q.kind != plan.CallCreate {
			begun = append(begun, q.begin(now))
		}
		c.waitForRate(q)
	}
	for len(c.rateLimited) > 0 {
		if !c.creations.pass(now, settings) {
			return begun, c.creations.at
		}
		q := c.rateLimited[0]
		c.rateLimited = c.rateLimited[1:]
		q.inLine = false
		begun = append(begun, q.begin(now)) // chosen only now: a more urgent call may have arrived
		c.waitForRate(q)
	}
	return begun, time.Time{}
}

// waitForRate makes a queue of creations wait for the rate, behind the queues that wait already.
func (c *Calls) waitForRate(q *queue) {
	if q.kind == plan.CallCreate && q.ready() && !q.inLine {
		q.inLine = true
		c.rateLimited = append(c.rateLimited, q)
	}
}

// End records that a call has ended, with any outcome.
func (c *Calls) End(call plan.Call) { c.queueOf(call).running-- }

// ready reports whether a call waits and may run beside the running ones.
func (q *queue) ready() bool { return q.running < callsAtOnce && len(q.waiting) > 0 }

// begin removes and returns the most urgent call. There must be one.
func (q *queue) begin(now time.Time) Begun {
	next, _ := heap.Pop(&q.waiting).(queued) // it holds nothing else
	q.running++
	return Begun{Call: next.Call, Waited: now.Sub(next.since)}
}

// queued is a waiting call. Lower ranks go first; equals in order of arrival.
type queued struct {
	plan.Call
	number int
	since  time.Time
}

// urgent is a heap of calls, the most urgent on top.
type urgent []queued

func (u urgent) Len() int { return len(u) }
func (u urgent) Less(i, j int) bool {
	if u[i].Rank != u[j].Rank {
		return u[i].Rank < u[j].Rank
	}
	return u[i].number < u[j].number
}
func (u urgent) Swap(i, j int) { u[i], u[j] = u[j], u[i] }
func (u *urgent) Push(x any) {
	if call, ok := x.(queued); ok { // it holds nothing else
		*u = append(*u, call)
	}
}

func (u *urgent) Pop() any {
	old := *u
	last := old[len(old)-1]
	old[len(old)-1] = queued{}
	*u = old[:len(old)-1]
	return last
}
