package guard

import (
	"container/list"
	"sync"
)

// turns are had by handshakes that compute. Whoever waits for one waits behind others of his address alone: the addresses take theirs one after the
// other, so that strangers, however many connections they open, take no more than one address's share of the processors each. Handshakes that have had a
// turn go before those that have not: what was computed for them is not to be in vain.
type turns struct {
	mu    sync.Mutex
	free  int
	begun queue // of handshakes that have had a turn
	fresh queue
}

// queue is of addresses that wait.
type queue struct {
	places map[string]*waiters
	ring   list.List // of *waiters, the next one in front
}

// waiters are those of one address.
type waiters struct {
	place string
	first list.List // of chan struct{}, closed when the turn has come
	at    *list.Element
}

func newTurns(n int) *turns {
	return &turns{free: n, begun: queue{places: map[string]*waiters{}}, fresh: queue{places: map[string]*waiters{}}}
}

// take waits for a turn until the caller has left. Begun says that he has had one.
func (t *turns) take(place string, begun bool, left <-chan struct{}) bool {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return true
	}
	q := &t.fresh
	if begun {
		q = &t.begun
	}
	mine := make(chan struct{})
	w, at := q.add(place, mine)
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
		q.drop(w, at)
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
	if !t.begun.pass() && !t.fresh.pass() {
		t.free++
	}
}

func (q *queue) add(place string, mine chan struct{}) (*waiters, *list.Element) {
	w := q.places[place]
	if w == nil {
		w = &waiters{place: place}
		w.at = q.ring.PushBack(w)
		q.places[place] = w
	}
	return w, w.first.PushBack(mine)
}

// pass says whether anybody waits for the turn, and has it now.
func (q *queue) pass() bool {
	front := q.ring.Front()
	if front == nil {
		return false
	}
	w, _ := front.Value.(*waiters) // nothing else is in it
	next := w.first.Front()
	mine, _ := next.Value.(chan struct{})
	close(mine)
	q.ring.MoveToBack(front)
	q.drop(w, next)
	return true
}

func (q *queue) drop(w *waiters, at *list.Element) {
	if w.first.Remove(at); w.first.Len() == 0 {
		q.ring.Remove(w.at)
		delete(q.places, w.place)
	}
}
