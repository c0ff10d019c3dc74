package guard

import (
	"container/list"
	"sync"
)

// handshakes hands out permits to handshakes that compute. Sources take turns, so a client with
// many connections delays others only by one source's share of the processors. Handshakes that have
// held a permit go before new ones, so that the work already done for them is not wasted.
type handshakes struct {
	mu    sync.Mutex
	free  int
	begun sourceQueue // of handshakes that have held a permit
	fresh sourceQueue
}

// sourceQueue is a round-robin queue of sources.
type sourceQueue struct {
	sources map[string]*waiters
	ring    list.List // of *waiters, the next one in front
}

// waiters are the waiting handshakes of one source.
type waiters struct {
	source   string
	channels list.List // of chan struct{}, closed when the permit is granted
	inRing   *list.Element
}

func newHandshakes(permits int) *handshakes {
	return &handshakes{
		free:  permits,
		begun: sourceQueue{sources: map[string]*waiters{}},
		fresh: sourceQueue{sources: map[string]*waiters{}},
	}
}

// acquire waits for a permit and reports whether it got one before removed was closed.
func (h *handshakes) acquire(source string, begun bool, removed <-chan struct{}) bool {
	h.mu.Lock()
	if h.free > 0 {
		h.free--
		h.mu.Unlock()
		return true
	}
	q := &h.fresh
	if begun {
		q = &h.begun
	}
	granted := make(chan struct{})
	w, at := q.add(source, granted)
	h.mu.Unlock()
	select {
	case <-granted:
		return true
	case <-removed:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-granted: // at the same moment
		h.pass()
	default:
		q.drop(w, at)
	}
	return false
}

func (h *handshakes) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pass()
}

// pass hands a permit to the next source that waits. h.mu must be held.
func (h *handshakes) pass() {
	if !h.begun.grant() && !h.fresh.grant() {
		h.free++
	}
}

func (q *sourceQueue) add(source string, granted chan struct{}) (*waiters, *list.Element) {
	w := q.sources[source]
	if w == nil {
		w = &waiters{source: source}
		w.inRing = q.ring.PushBack(w)
		q.sources[source] = w
	}
	return w, w.channels.PushBack(granted)
}

// grant hands a permit to the next handshake and reports whether one was waiting.
func (q *sourceQueue) grant() bool {
	front := q.ring.Front()
	if front == nil {
		return false
	}
	w, _ := front.Value.(*waiters) // the ring holds nothing else
	next := w.channels.Front()
	granted, _ := next.Value.(chan struct{})
	close(granted)
	q.ring.MoveToBack(front)
	q.drop(w, next)
	return true
}

func (q *sourceQueue) drop(w *waiters, at *list.Element) {
	if w.channels.Remove(at); w.channels.Len() == 0 {
		q.ring.Remove(w.inRing)
		delete(q.sources, w.source)
	}
}
