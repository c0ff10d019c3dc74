package coordinator

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/gateway"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// Meter receives what is worth counting, where it happens, from many goroutines. It must not block.
type Meter interface {
	gateway.Meter
	// Led reports that leadership began or ended.
	Led(begun bool)
	// Disturbed reports that leases may have ended although their agents live.
	Disturbed()
	// Planned reports a plan and how long it took.
	Planned(took time.Duration)
	// Decided reports a committed action, with its journal entries.
	Decided(a *plan.Action)
	// Held reports work that is due and blocked, once for each.
	Held(b *store.Blocked)
	// Refused reports why the leader did not do what it would have done.
	Refused(why Refusal)
	// Asked reports how long a call waited in its queue.
	Asked(call string, waited time.Duration)
	// Called reports a finished provider call.
	Called(provider, call string, took time.Duration, err error)
	// Detected reports a failed instance, and the time since the leader saw the first sign of
	// trouble.
	Detected(verdict store.Verdict, after time.Duration)
	// Repaired reports that a replacement, or the instance itself after a restart, is healthy, and
	// the time since the failure was counted.
	Repaired(verdict store.Verdict, after time.Duration)
}

// Refusal is why a leader does not act.
type Refusal string

// The refusals that no rule of a plan reports.
const (
	RefusedStale    Refusal = "stale"    // no plan is made: the cache is too old (SAFE-3)
	RefusedFence    Refusal = "fence"    // a transaction failed since another replica leads (SAFE-7)
	RefusedConflict Refusal = "conflict" // a transaction failed since its evidence had changed (SAFE-4)
	RefusedGrace    Refusal = "grace"    // a lease ended, and its agent has time to return (SAFE-1)
)

// Unmetered counts nothing.
type Unmetered struct{ gateway.Unmetered }

func (Unmetered) Led(bool)                                    {}
func (Unmetered) Disturbed()                                  {}
func (Unmetered) Planned(time.Duration)                       {}
func (Unmetered) Decided(*plan.Action)                        {}
func (Unmetered) Held(*store.Blocked)                         {}
func (Unmetered) Refused(Refusal)                             {}
func (Unmetered) Asked(string, time.Duration)                 {}
func (Unmetered) Called(string, string, time.Duration, error) {}
func (Unmetered) Detected(store.Verdict, time.Duration)       {}
func (Unmetered) Repaired(store.Verdict, time.Duration)       {}

// meterAction reports a committed action, and the repair that it completes, if it does.
func (t *term) meterAction(a *plan.Action) {
	t.r.deps.Meter.Decided(a)
	if a.To != store.Running || a.From == store.Running {
		return
	}
	var failure *store.Failure
	t.r.cache.View(func(c *cache.Content) {
		rec := c.Instances[a.Instance].Record
		failures := c.Slots[rec.Group][rec.Slot].Record.Failures
		if len(failures) == 0 {
			return
		}
		last := failures[len(failures)-1]
		// for the first time: a later failure is another one
		replaces := rec.Replaces == last.Instance && rec.Boot == ""
		restarted := rec.ID == last.Instance && rec.Restart != nil && rec.Restart.Heals
		if replaces || restarted {
			failure = &last
		}
	})
	if failure != nil {
		t.r.deps.Meter.Repaired(failure.Verdict, max(0, time.Since(failure.At)))
	}
}

// meterVerdict reports an instance that was judged failed, and records since when there is trouble.
func (t *term) meterVerdict(id string, before, now plan.Judgment) {
	if !troubled(now.Verdict) {
		delete(t.troubles, id)
		return
	}
	if t.troubles[id].IsZero() {
		t.troubles[id] = time.Now()
	}
	switch {
	case now.Verdict.Failed() && !before.Verdict.Failed():
		t.r.deps.Meter.Detected(now.Verdict, time.Since(t.troubles[id]))
	case now.Awaits == store.AwaitsCalm && before.Awaits != store.AwaitsCalm:
		t.r.deps.Meter.Refused(RefusedGrace)
	}
}
