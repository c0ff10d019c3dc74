package etcdstore

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

// renewal is the outcome of one.
type renewal struct {
	lease store.Lease
	err   error
}

// waiter is one caller of Renew, on the one list of its stream that holds it. The stream's mutex
// guards it.
type waiter struct {
	id    store.LeaseID
	since time.Time    // when it was queued
	from  time.Time    // when it was sent, read before sending
	left  bool         // the caller has gone
	done  chan renewal // takes one, so that answering never waits

	in          *waiterList
	prev, next  *waiter
	nextOfLease *waiter // sent after this one for the same lease
}

// waiterList is a list from which any member can be removed at once.
type waiterList struct{ head, tail *waiter }

func (l *waiterList) push(w *waiter) {
	w.in, w.prev, w.next = l, l.tail, nil
	if l.tail == nil {
		l.head = w
	} else {
		l.tail.next = w
	}
	l.tail = w
}

func (l *waiterList) pushFront(w *waiter) {
	w.in, w.prev, w.next = l, nil, l.head
	if l.head == nil {
		l.tail = w
	} else {
		l.head.prev = w
	}
	l.head = w
}

func (l *waiterList) remove(w *waiter) {
	if w.prev == nil {
		l.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.in, w.prev, w.next = nil, nil, nil
}

// leaseChain is what was sent for one lease, in that order: etcd answers in it.
type leaseChain struct{ head, tail *waiter }

func (c *leaseChain) push(w *waiter) {
	w.nextOfLease = nil
	if c.tail == nil {
		c.head = w
	} else {
		c.tail.nextOfLease = w
	}
	c.tail = w
}

func (c *leaseChain) pop() *waiter {
	w := c.head
	c.head = w.nextOfLease
	if c.head == nil {
		c.tail = nil
	}
	return w
}
