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

// outages are the outages of one provider: its Lists fail, the calls for its instances are refused,
// and it does not make machines of templates of which it has made some. Zero: there is none.
type outages struct{ lists, calls, creations plan.Outage }

// at returns the outage at a time: of several one that lasts, and of these the one that began
// first.
func (o outages) at(now time.Time) (out plan.Outage) {
	for _, other := range []plan.Outage{o.lists, o.calls, o.creations} {
		switch over := !other.Until.IsZero() && !now.Before(other.Until); {
		case over || other.Since.IsZero():
		case out.Since.IsZero() || other.Lasts(now) && !out.Lasts(now),
			other.Lasts(now) == out.Lasts(now) && other.Since.Before(out.Since):
			out = other
		}
	}
	return out
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
// an outage of calls nor ends one. The caller holds e.mu.
func (e *Evidence) seeAnswer(name string, err error) {
	o := e.outages[name]
	switch {
	case unexplained(err):
		return
	case refuses(err):
		e.fails(&o.calls, err)
	default:
		o.calls = plan.Outage{}
	}
	e.setOutages(name, o)
}

// seeCreation records the answer to a Create. An error without a known meaning shows an outage if
// the provider has made a machine of the same template in the same zone: then the template is not
// why. Any other answer ends that, unless it would be the same for every template. The caller holds
// e.mu.
func (e *Evidence) seeCreation(rec store.Instance, err error) {
	o := e.outages[rec.Spec.Provider]
	switch {
	case refuses(err), unexplained(err) && !e.hasMade(rec):
		return
	case unexplained(err):
		e.fails(&o.creations, err)
	default:
		o.creations = plan.Outage{}
	}
	e.setOutages(rec.Spec.Provider, o)
}

// hasMade reports whether a provider has made a machine of the kind that an instance needs: the
// agent of another instance has registered.
func (e *Evidence) hasMade(rec store.Instance) bool {
	kind := machineKindOf(rec)
	for id, w := range e.instances {
		if id != rec.ID && w.kind == kind && w.provider == rec.Spec.Provider && w.phase.Registered() {
			return true
		}
	}
	return false
}

// machineKind is what the creation of a machine depends on. A template may be right in one zone
// alone, and for machines on demand alone.
type machineKind struct {
	template, zone string
	spot           bool
}

func machineKindOf(rec store.Instance) machineKind {
	return machineKind{rec.Template, rec.Zone, rec.Spec.Spot}
}

// refuses reports whether a provider refuses a call whatever its template is.
func refuses(err error) bool {
	kind := provider.KindOf(err)
	return kind == provider.Throttled || kind == provider.Credentials
}

// unexplained reports whether either the template or the provider may be why a call failed.
func unexplained(err error) bool { return err != nil && provider.KindOf(err) == provider.Temporary }

// fails begins an outage, or shows that it goes on.
func (e *Evidence) fails(o *plan.Outage, err error) {
	now := e.cfg.Now()
	if !now.Before(o.Until) {
		*o = plan.Outage{Since: now, Why: err.Error()}
	}
	after, _ := provider.RetryAfter(err)
	o.Last = store.Later(o.Last, now.Add(after)) // by its own words
	o.Until = store.Later(o.Until, o.Last.Add(callsStand))
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
