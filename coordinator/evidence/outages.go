package evidence

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
)

// outages are the outages of one provider: its Lists fail, and the calls for its instances are
// refused. Zero: there is none.
type outages struct{ lists, calls plan.Outage }

// earliest returns the outage that began first.
func (o outages) earliest() plan.Outage {
	if o.lists.Since.IsZero() || !o.calls.Since.IsZero() && o.calls.Since.Before(o.lists.Since) {
		return o.calls
	}
	return o.lists
}

// NotListed records that a List failed. That proves nothing about machines, but it shows that the
// provider fails whatever the template is (ROLL-4). A throttled List only comes later.
func (e *Evidence) NotListed(name string, begun time.Time, err error) {
	if provider.KindOf(err) == provider.Throttled {
		return
	}
	e.mu.Lock()
	o := e.outages[name]
	if o.lists.Since.IsZero() {
		o.lists = plan.Outage{Since: begun, Why: err.Error()}
	}
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
	o := e.outages[name]
	kind := provider.KindOf(err)
	switch {
	case err != nil && kind == provider.Temporary:
		return
	case err == nil || kind != provider.Throttled && kind != provider.Credentials:
		o.calls = plan.Outage{}
	case o.calls.Since.IsZero():
		o.calls = plan.Outage{Since: e.cfg.Now(), Why: err.Error()}
	}
	e.setOutages(name, o)
}

// setOutages keeps the outages of a provider. When one begins or ends, the groups with a roll are
// to be planned; setOutages reports whether there are any.
func (e *Evidence) setOutages(name string, o outages) (news bool) {
	same := e.outages[name].earliest() == o.earliest()
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
		if now := o.earliest(); !now.Since.IsZero() {
			if out == nil {
				out = map[string]plan.Outage{}
			}
			out[name] = now
		}
	}
	return out
}
