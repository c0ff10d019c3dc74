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
	// tick is the shortest time that a loop sleeps, so that what is due at nearly the same time is
	// sent together.
	tick = time.Millisecond
	// turns is how many agents a loop runs before it releases its lock.
	turns = 128
)

func chance() float64 { return rand.Float64() }

// loop runs some of the agents, each when it is due.
type loop struct {
	crowd *Crowd
	poke  chan struct{}

	mu      sync.Mutex
	over    bool
	queue   queue
	resting time.Time // when the sleep ends unless the loop is woken
	lines   map[*line]struct{}
	trunks  map[trunk]*line // the shared connections
	counts  counts
	names   map[string]string // names of replicas and configurations, each stored once
	tails   map[string][]byte // encoded reports, by configuration

	// Buffers in which messages are encoded.
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

// add adds an agent that begins at the given time.
func (l *loop) add(a *agent, begin time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.agents++
	l.call(a, begin)
}

// call schedules an agent's next call and replaces the previous one; a zero time cancels it. l.mu
// must be held.
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

// run runs agents that are due until the crowd ends.
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

// someTurns runs some of the agents that are due and reports whether more are due.
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

// rest returns the time until an agent is due.
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

// close closes all connections of the loop.
func (l *loop) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for ln := range l.lines {
		ln.close(errOver)
	}
}

// named returns the stored copy of a text that many agents share.
func (l *loop) named(text string) string {
	if one, ok := l.names[text]; ok {
		return one
	}
	l.names[text] = text
	return text
}

// queue is a heap of agents, ordered by when they are due.
type queue []*agent

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].wake.Before(q[j].wake) }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

func (q *queue) Push(x any) {
	a, _ := x.(*agent) // the heap holds only agents
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
