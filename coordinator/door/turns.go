package door

import (
	"container/list"
	"sync"
)

// turns are had by handshakes that compute. Whoever waits for one waits behind others of his address alone: the addresses take theirs one after the
// other, so that strangers, however many connections they open, take no more than one address's share of the processors each.
type turns struct {
	mu     sync.Mutex
	free   int
	queues map[string]*waiters
	ring   list.List // of *waiters, the next one in front
}

// waiters are those of one address.
type waiters struct {
	place string
	first list.List // of chan struct{}, closed when the turn has come
	at    *list.Element
}

func newTurns(n int) *turns { return &turns{free: n, queues: map[string]*waiters{}} }

// take waits for a turn until the caller has left.
func (t *turns) take(place string, left <-chan struct{}) bool {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return true
	}
	q := t.queues[place]
	if q == nil {
		q = &waiters{place: place}
		q.at = t.ring.PushBack(q)
		t.queues[place] = q
	}
	mine := make(chan struct{})
	at := q.first.PushBack(mine)
	t.mu.Unlock()
	select {
	case <-mine:
		return true
	case <-left:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-mine: // it came as the caller left
		t.pass()
	default:
		t.drop(q, at)
	}
	return false
}

// give gives a turn back.
func (t *turns) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass()
}

// pass hands a turn to the first of the next address. The caller has the lock.
func (t *turns) pass() {
	front := t.ring.Front()
	if front == nil {
		t.free++
		return
	}
	q, _ := front.Value.(*waiters) // nothing else is in it
	next := q.first.Front()
	mine, _ := next.Value.(chan struct{})
	close(mine)
	t.ring.MoveToBack(front)
	t.drop(q, next)
}

func (t *turns) drop(q *waiters, at *list.Element) {
	if q.first.Remove(at); q.first.Len() == 0 {
		t.ring.Remove(q.at)
		delete(t.queues, q.place)
	}
}
