package coordinator

import (
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

const (
	// clockSamples is how many of the leader's notes are compared: a late note proves little.
	clockSamples = 6
	// clockOff is the difference from which it is published.
	clockOff = time.Second
)

// clock compares this replica's clock with the leader's, which writes the time into served. How
// long the note took to get here makes this clock look ahead, so the smallest difference counts.
type clock struct {
	r *Replica

	mu      sync.Mutex
	leader  string
	samples []time.Duration // the newest last
}

// Listed is ignored: the note may be of any age.
func (*clock) Listed(*cache.Content) {}

// Changed compares a new note with the time.
func (w *clock) Changed(c *cache.Content, changes []cache.Change) {
	for _, change := range changes {
		if change.Kind == store.KindServed && c.Served.Present() && !c.Served.Record.At.IsZero() {
			w.take(c.Served.Record, time.Now().UTC())
			return
		}
	}
}

// Interrupted forgets the samples: the next note may have been delayed.
func (w *clock) Interrupted(error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.samples = nil
}

func (w *clock) take(note store.Served, now time.Time) {
	w.mu.Lock()
	before := w.off()
	if note.Replica != w.leader {
		w.leader, w.samples = note.Replica, nil
	}
	w.samples = append(w.samples, now.Sub(note.At))
	w.samples = w.samples[max(0, len(w.samples)-clockSamples):]
	after := w.off()
	w.mu.Unlock()
	if (after-before).Abs() >= clockOff/2 && w.r != nil {
		w.r.pokePublish()
	}
}

// off is the difference, positive if this clock is ahead; 0 if it is small or not known yet. The
// lock must be held.
func (w *clock) off() time.Duration {
	if len(w.samples) < clockSamples/2 {
		return 0
	}
	least := w.samples[0]
	for _, d := range w.samples[1:] {
		if d.Abs() < least.Abs() {
			least = d
		}
	}
	if least.Abs() < clockOff {
		return 0
	}
	return least.Round(100 * time.Millisecond)
}

// Off is how far this replica's clock is ahead of the leader's; 0 if that is less than a second.
func (w *clock) Off() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.off()
}
