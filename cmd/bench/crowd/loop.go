package crowd

import (
	"container/heap"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/protocol"
)

const (
	// tick is how long a loop rests at least, so that what is due at nearly the same time goes out
	// together.
	tick = time.Millisecond
	// turns is for how many agents a loop keeps its lock.
	turns = 128
)

func chance() float64 { return rand.Float64() }

// loop has some of the agents, and calls each when its time has come.
type loop struct {
	crowd *Crowd
	poke  chan struct{}

	mu      sync.Mutex
	over    bool
	queue   queue
	resting time.Time // until when, if nothing pokes it
	lines   map[*line]struct{}
	trunks  map[trunk]*line // those that are shared
	counts  counts
	names   map[string]string // of replicas and configurations, each kept once
	tails   map[string][]byte // of reports, by configuration

	// What messages are made in.
	head    protocol.Report
	beat    protocol.Heartbeat
	message []byte
	part    []byte
}

func newLoop(c *Crowd) *loop {
	l := &loop{
		crowd: c, poke: make(chan struct{}, 1), lines: map[*line]struct{}{}, trunks: map[trunk]*line{},
		counts: newCounts(),
		names:  map[string]string{}, tails: map[string][]byte{},
	}
	l.head.Sent, l.head.MachineUptime = &timestamppb.Timestamp{}, &durationpb.Duration{}
	return l
}

// add takes in an agent that begins at a time.
func (l *loop) add(a *agent, begin time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.agents++
	l.call(a, begin)
}

// call has an agent called at a time, and not at another; never, if that is zero. The caller has
// the lock.
func (l *loop) call(a *agent, at time.Time) {
	if a.wake.Equal(at) && a.at >= 0 {
		return
	}
	a.wake = at
	switch {
	case at.IsZero() && a.at >= 0:
		heap.Remove(&l.queue, a.at)
		return
	case at.IsZero():
		return
	case a.at >= 0:
		heap.Fix(&l.queue, a.at)
	default:
		heap.Push(&l.queue, a)
	}
	if at.Before(l.resting) {
		select {
		case l.poke <- struct{}{}:
		default:
		}
	}
}

// run calls agents until the crowd ends.
func (l *loop) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-l.crowd.ctx.Done():
			return
		case <-timer.C:
		case <-l.poke:
		}
		for l.someTurns() {
		}
		timer.Reset(l.rest())
	}
}

// someTurns calls agents whose time has come, and says whether there are more.
func (l *loop) someTurns() (more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range turns {
		if l.over || len(l.queue) == 0 {
			return false
		}
		a := l.queue[0]
		now := l.crowd.now()
		late := now.Sub(a.wake)
		if late < 0 {
			return false
		}
		l.counts.late.Add(late)
		a.step(now, nil)
	}
	return true
}

// rest is how long nothing is due.
func (l *loop) rest() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := time.Hour
	if len(l.queue) > 0 {
		d = max(tick, time.Until(l.queue[0].wake))
	}
	l.resting = time.Now().Add(d)
	return d
}

// close ends everything of the loop.
func (l *loop) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for ln := range l.lines {
		ln.close(errOver)
	}
}

// named is the one copy of a text that many agents have.
func (l *loop) named(text string) string {
	if one, is := l.names[text]; is {
		return one
	}
	l.names[text] = text
	return text
}

// queue is a heap of agents; the one whose time comes first is in front.
type queue []*agent

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].wake.Before(q[j].wake) }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

func (q *queue) Push(x any) {
	a, _ := x.(*agent) // nothing else is in it
	a.at = len(*q)
	*q = append(*q, a)
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	a := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	a.at = -1
	return a
}
