package coordinator

import (
	"maps"
	"slices"
	"sync"

	"github.com/leasehold/leasehold/coordinator/leader"
)

// inbox holds events until the leader's loop takes them up. Adding one never blocks, and what asks
// for the same thing twice is kept once.
type inbox struct {
	ready chan struct{} // full while there is an event

	mu     sync.Mutex
	events []leader.Event
	lists  map[string]bool // requested, by provider
	woken  bool
}

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1), lists: map[string]bool{}} }

func (b *inbox) add(put func()) {
	b.mu.Lock()
	put()
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

func (b *inbox) post(e leader.Event)         { b.add(func() { b.events = append(b.events, e) }) }
func (b *inbox) requestList(provider string) { b.add(func() { b.lists[provider] = true }) }
func (b *inbox) wake()                       { b.add(func() { b.woken = true }) }

// take returns all events. What happened comes before the wish to plan.
func (b *inbox) take() []leader.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := b.events
	b.events = nil
	for _, name := range slices.Sorted(maps.Keys(b.lists)) {
		events = append(events, leader.ListRequested{Provider: name})
	}
	clear(b.lists)
	if b.woken {
		events = append(events, leader.Wake{})
	}
	b.woken = false
	return events
}
