package evidence

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// callsStand is for how long an answer shows that a provider refuses calls: longer than the longest
// wait between two of them. Without it an outage would stand when no call is made any more, or only
// calls that fail for another reason.
const callsStand = 2 * time.Minute

// outages are the outages of one provider: its Lists fail, and the calls for its instances are
// refused. Zero: there is none.
type outages struct{ lists, calls plan.Outage }

// at returns the outage at a time: of two the one that lasts, or else the one that began first.
func (o outages) at(now time.Time) plan.Outage {
	lists, calls := o.lists, o.calls
	if !now.Before(calls.Until) {
		calls = plan.Outage{}
	}
	switch {
	case calls.Since.IsZero():
		return lists
	case lists.Since.IsZero():
		return calls
	case lists.Lasts(now) != calls.Lasts(now):
		return pick(lists.Lasts(now), lists, calls)
	default:
		return pick(calls.Since.Before(lists.Since), calls, lists)
	}
}

func pick(first bool, a, b plan.Outage) plan.Outage {
	if first {
		return a
	}
	return b
}

// NotListed records that a List failed. That proves nothing about machines, but it shows that the
// provider fails whatever the template is (ROLL-4).
func (e *Evidence) NotListed(name string, begun time.Time, err error) {
	e.mu.Lock()
	o := e.outages[name]
	if o.lists.Since.IsZero() {
		o.lists = plan.Outage{Since: begun, Why: err.Error()}
	}
	after, _ := provider.RetryAfter(err)
	o.lists.Last = begun.Add(after)
	news := e.setOutages(name, o)
	e.mu.Unlock()
	if news {
		e.cfg.Wake()
	}
}

// seeAnswer records the answer to a call for an instance. Throttling and refused credentials do not
// depend on the template. An error without a known meaning may depend on it, so it neither begins
// an outage nor ends one. The caller holds e.mu.
func (e *Evidence) seeAnswer(name string, err error) {
	o, now := e.outages[name], e.cfg.Now()
	kind := provider.KindOf(err)
	switch {
	case err != nil && kind == provider.Temporary:
		return
	case err == nil || kind != provider.Throttled && kind != provider.Credentials:
		o.calls = plan.Outage{}
	default:
		if !now.Before(o.calls.Until) {
			o.calls = plan.Outage{Since: now, Why: err.Error()}
		}
		after, _ := provider.RetryAfter(err)
		o.calls.Last = store.Later(o.calls.Last, now.Add(after)) // by its own words
		o.calls.Until = store.Later(o.calls.Until, o.calls.Last.Add(callsStand))
	}
	e.setOutages(name, o)
}

// setOutages keeps the outages of a provider. When one turns out to last, or ends after that, the
// groups with a roll are to be planned; setOutages reports whether there are any.
func (e *Evidence) setOutages(name string, o outages) (news bool) {
	now := e.cfg.Now()
	same := e.outages[name].at(now).Lasts(now) == o.at(now).Lasts(now)
	e.outages[name] = o
	if same {
		return false
	}
	for group := range e.rolling {
		e.dirty[group] = true
	}
	return len(e.rolling) > 0
}

// failing returns the outages for a snapshot.
func (e *Evidence) failing() map[string]plan.Outage {
	var out map[string]plan.Outage
	for name, o := range e.outages {
		if now := o.at(e.cfg.Now()); !now.Since.IsZero() {
			if out == nil {
				out = map[string]plan.Outage{}
			}
			out[name] = now
		}
	}
	return out
}
