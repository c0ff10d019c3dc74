package evidence

import (
	"errors"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// MarkBusy marks the calls for an instance as in progress; false if they are already, or the
// instance is unknown.
func (e *Evidence) MarkBusy(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.instances[id]
	if w == nil || w.calls.Busy {
		return false
	}
	w.calls.Busy = true
	w.version++
	return true
}

// Dropped records that a call was not made after all.
func (e *Evidence) Dropped(id string) {
	e.finish(id, func(*observed) {})
}

// Postponed records that a call was not made because it could not be recorded. It is not retried
// before the given time has passed.
func (e *Evidence) Postponed(id string, wait time.Duration) {
	e.finish(id, func(w *observed) { w.calls.RetryAt = e.cfg.Now().Add(wait) })
}

const (
	// fullFor is how long a zone is skipped after a capacity error or repeated failures: longer than
	// the longest wait between two calls.
	fullFor = 2 * time.Minute
	// zoneFailures is the number of consecutive failures of one creation that count against its zone.
	zoneFailures = 3
)

// passOver makes new instances go to other zones for a while, if there are any.
func (e *Evidence) passOver(rec store.Instance, until time.Time) {
	market := plan.MarketOf(rec.Spec)
	if e.full[market] == nil {
		e.full[market] = map[string]time.Time{}
	}
	e.full[market][rec.Zone] = until
}

// NothingMade reports whether a provider's error proves that the call made no machine and will make
// none.
func NothingMade(err error) bool {
	if err == nil {
		return false
	}
	switch provider.KindOf(err) {
	case provider.Capacity, provider.Quota, provider.Credentials, provider.Invalid, provider.Deleted,
		provider.Throttled:
		return true
	default:
		return false
	}
}

// Created records the outcome of a Create that began at a time.
func (e *Evidence) Created(rec store.Instance, begun time.Time, m provider.Machine, err error) {
	c := e.cfg.Capabilities[rec.Spec.Provider]
	e.finish(rec.ID, func(w *observed) {
		now := e.cfg.Now()
		e.seeAnswer(rec.Spec.Provider, err)
		e.seeCreation(rec, err)
		// A call that may still take effect ties the ID to its zone: in another zone it could make a
		// second machine.
		w.uncertain = w.uncertain || err != nil && !NothingMade(err)
		w.calls.NoSpot = rec.Spec.Spot && (errors.Is(err, provider.ErrCapacity) || errors.Is(err, provider.ErrQuota))
		w.calls.NothingMade = w.calls.NoSpot && !w.uncertain
		if e.noteRefusal(rec, err, now) {
			w.failures, w.calls.Problem = 0, "" // it says nothing about this instance
			w.provable(begun.Add(c.CallTimeout + c.Consistency))
			return
		}
		w.calls.NoRoom = errors.Is(err, provider.ErrCapacity) && !w.uncertain
		if err != nil {
			e.failed(w, err)
			if errors.Is(err, provider.ErrCapacity) || w.failures >= zoneFailures {
				e.passOver(rec, now.Add(fullFor))
			}
			w.provable(begun.Add(c.CallTimeout + c.Consistency))
			return
		}
		w.succeeded()
		w.calls.Made, w.calls.Ref, w.calls.Address = true, m.Ref, m.Address
		w.provable(now.Add(c.Consistency))
	})
}

// Failed records that a creation or a restart could not be made.
func (e *Evidence) Failed(id string, err error) {
	e.finish(id, func(w *observed) { e.failed(w, err) })
}

// Removed records the outcome of a removal.
func (e *Evidence) Removed(id string, err error) {
	e.finish(id, func(w *observed) {
		e.seeAnswer(w.provider, err)
		if err != nil {
			e.failed(w, err)
			// a call that was throttled did nothing
			if w.calls.RemovalFailed.IsZero() && !errors.Is(err, provider.ErrThrottled) {
				w.calls.RemovalFailed = e.cfg.Now()
			}
			return
		}
		w.succeeded()
		w.calls.Deleted = e.cfg.Now()
		w.calls.ListedUntil = w.calls.Deleted.Add(e.cfg.Capabilities[w.provider].Consistency)
	})
}

// CopyRemoved records the outcome of removing an instance's second machine. Lists may show it for a
// while: the next List without it makes the evidence forget it.
func (e *Evidence) CopyRemoved(id string, err error) {
	e.finish(id, func(w *observed) {
		if err != nil {
			e.failed(w, err)
			return
		}
		w.succeeded()
		w.sighting.Copies, w.copiesFrom = nil, e.cfg.Now().Add(e.cfg.Capabilities[w.provider].Consistency)
	})
}

// Restarted records the outcome of the restart with a token.
func (e *Evidence) Restarted(id, token string, err error) {
	e.finish(id, func(w *observed) {
		e.seeAnswer(w.provider, err)
		switch {
		case errors.Is(err, provider.ErrNotFound):
			w.calls.Missing = true
		case err != nil:
			e.failed(w, err)
			if errors.Is(err, provider.ErrThrottled) && w.works() {
				w.calls.PutOff = w.calls.RetryAt
			}
		default:
			w.succeeded()
			w.calls.Restarted = token
		}
	})
}

func (e *Evidence) finish(id string, note func(*observed)) {
	e.mu.Lock()
	if w := e.instances[id]; w != nil {
		note(w)
		w.calls.Busy = false
		w.version++
		e.dirty[w.group] = true
	}
	e.mu.Unlock()
	e.cfg.Wake()
}

// works reports whether the agent has an open stream.
func (w *observed) works() bool { return w.hasAlive && w.stream == store.StreamOpen }

func (w *observed) provable(from time.Time) {
	if from.After(w.calls.AbsentFrom) {
		w.calls.AbsentFrom = from
	}
}

func (w *observed) succeeded() {
	w.failures, w.calls.Problem, w.calls.RetryAt = 0, "", time.Time{}
}

// failed delays the next call: by what the provider asks, else from 1s doubling to 1m, with jitter.
func (e *Evidence) failed(w *observed, err error) {
	w.failures++
	wait := min(time.Minute, time.Second<<min(w.failures-1, 6))
	wait = wait/2 + e.cfg.Jitter(wait/2)
	if after, throttled := provider.RetryAfter(err); throttled {
		wait = after
	}
	w.calls.Problem, w.calls.RetryAt = err.Error(), e.cfg.Now().Add(wait)
	w.calls.Refused, w.calls.WrongTemplate = errors.Is(err, provider.ErrDeleted), errors.Is(err, provider.ErrInvalid)
}
