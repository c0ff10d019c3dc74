package leader

import (
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

const (
	// listsApart keeps many suspicions from causing as many Lists: the first starts one at once,
	// and all within the next second share another.
	listsApart = time.Second
	// shortestPoll is the shortest provider_poll that is followed.
	shortestPoll = 100 * time.Millisecond
)

// Lists schedules the Lists of one provider's machines: every provider_poll, and at once when there
// is a suspicion or something to confirm. However many requests there are, one List runs at a time,
// and one begins after the last request (DET-3, DET-12). A request often comes faster than the
// provider notices that a machine has stopped, so each requested List is followed by a second one.
// The first List is due at once.
type Lists struct {
	running   bool
	requested bool // since the last List began
	prompted  bool // the List that began last was requested
	begun     time.Time
	due       time.Time // of the next List, unless one is requested
	earliest  time.Time // no List begins before
}

// Request makes a List begin as soon as one may.
func (l *Lists) Request() { l.requested = true }

// Next returns when the next List is to begin. It returns false while a List runs.
func (l *Lists) Next() (at time.Time, ok bool) {
	switch {
	case l.running:
		return time.Time{}, false
	case l.requested || l.due.Before(l.earliest):
		return l.earliest, true
	default:
		return l.due, true
	}
}

// Requested reports whether a List was requested and has not begun.
func (l *Lists) Requested() bool { return l.requested }

// Begin records that a List begins.
func (l *Lists) Begin(now time.Time) {
	l.running, l.begun = true, now
	l.prompted, l.requested = l.requested, false
}

// End records that the running List has ended, and how. A provider that throttles is not listed for
// as long as it asks.
func (l *Lists) End(now time.Time, settings store.ShardSettings, err error) {
	wait := settings.ProviderPoll.D()
	if wait < shortestPoll {
		wait = store.DefaultShardSettings().ProviderPoll.D()
	}
	if l.prompted {
		wait = min(wait, listsApart)
	}
	pause, _ := provider.RetryAfter(err)
	l.running = false
	l.due = now.Add(max(wait, pause))
	l.earliest = now.Add(max(pause, listsApart-now.Sub(l.begun)))
}
