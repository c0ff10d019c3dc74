package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/store"
)

// entry is a membership with everything that is known of it.
type entry struct {
	store.Traffic
	calls MemberCalls
	of    string
	seen  *Balancer // nil: this coordinator has no configuration for it
	fresh bool      // the listing began after the last call, and after the instance entered its phase
	has   balancer.Membership
	due   time.Time // when its timer ends; zero: it has none
}

func (m *member) entry(v *view, i int) entry {
	e := entry{Traffic: m.Record.Traffic[i], of: m.ID(), seen: v.s.Balancers[m.Record.Traffic[i].Balancer]}
	if i < len(m.MemberCalls) {
		e.calls = m.MemberCalls[i]
	}
	if e.Timer != nil {
		e.due = v.ends(m.Due, store.TimerTraffic(e.Balancer), e.Timer)
	}
	if e.seen == nil {
		return e
	}
	e.has = e.seen.of(e.member(m, v.spec))
	e.fresh = !e.seen.Begun.IsZero() && (e.calls.Done.IsZero() ||
		e.seen.Begun.After(e.calls.Done.Add(e.seen.Capabilities.Consistency)))
	return e
}

// member returns what the balancer should have. Only an Add needs to know how the group uses it.
func (e *entry) member(m *member, spec *store.Group) balancer.Member {
	b := balancer.Member{Instance: m.ID(), Address: e.Address, Port: e.Port}
	if e.State.Wanted() && spec != nil {
		if use := spec.Balancer(e.Balancer); use != nil {
			b.Use = balancer.Use{Weight: use.Weight, Settings: use.Settings}
		}
	}
	return b
}

// entries returns the memberships of an instance.
func (d *traffic) entries(m *member) []entry {
	list := make([]entry, len(m.Record.Traffic))
	for i := range list {
		list[i] = m.entry(&d.view, i)
	}
	return list
}

// confirmed reports whether the balancer has sent the instance traffic since it entered its phase.
func (e *entry) confirmed(m *member) bool {
	return e.State.Wanted() && e.fresh && e.seen.Begun.After(m.PhaseStart) && e.has.Confirmed()
}

// silent reports whether the balancer has been silent for so long that work that need not wait for
// it continues.
func (d *traffic) silent(b *Balancer) bool {
	switch {
	case b == nil:
		return true
	case b.SilentSince.IsZero():
		return false
	}
	at := b.SilentSince.Add(silentAfter)
	d.wake(at)
	return !d.now.Before(at)
}

// ignored reports whether nothing waits for an entry: no coordinator is configured with its
// balancer, and the group does not use it, so operators have abandoned it.
func (d *traffic) ignored(e *entry) bool {
	return e.seen == nil && !d.s.Configured[e.Balancer] && (d.spec == nil || d.spec.Balancer(e.Balancer) == nil)
}

// left reports whether the balancer opens no new connections to the instance.
func (d *traffic) left(e *entry) bool {
	switch {
	case e.State == store.TrafficLeaving, d.ignored(e), e.State == store.TrafficDraining && e.calls.Taken:
		return true
	case e.State != store.TrafficDraining || e.seen == nil:
		return false
	}
	// A List alone does not prove it: an earlier Add may still be under way.
	return e.calls.Last == MemberDrain && !e.calls.Busy
}

// ended reports whether no connection to the instance is left. A failed instance does not wait for
// a balancer that does not answer (LB-3).
func (d *traffic) ended(m *member, e *entry) bool {
	switch {
	case d.ignored(e), e.State == store.TrafficLeaving:
		return true
	case m.failing() && d.silent(e.seen):
		return true
	case e.seen == nil || !d.left(e) || !e.fresh:
		return false
	case e.calls.Taken:
		return true
	}
	return e.has.Gone() || e.seen.Capabilities.DrainEnds && e.has.Drained()
}

// inTraffic reports whether a load balancer may send an instance traffic.
func (m *member) inTraffic() bool {
	return slices.ContainsFunc(m.Record.Traffic, func(t store.Traffic) bool { return t.State != store.TrafficLeaving })
}

func (d *traffic) allEntries(m *member, property func(*entry) bool) bool {
	for _, e := range d.entries(m) {
		if !property(&e) {
			return false
		}
	}
	return true
}

// leftTraffic reports whether no load balancer opens new connections to the instance.
func (d *traffic) leftTraffic(m *member) bool { return d.allEntries(m, d.left) }

// trafficEnded reports whether no connection through a load balancer is left.
func (d *traffic) trafficEnded(m *member) bool {
	return d.allEntries(m, func(e *entry) bool { return d.ended(m, e) })
}

// removedFromTraffic reports whether the machine may be stopped: every balancer has been asked to
// remove it, or its time is over.
func (d *traffic) removedFromTraffic(m *member) bool {
	if m.Record.Dead {
		return true
	}
	return d.allEntries(m, func(e *entry) bool {
		if d.ignored(e) || e.State == store.TrafficLeaving && (e.calls.Last == MemberRemove || e.calls.Taken) {
			return true
		}
		d.wake(e.due)
		return e.due.IsZero() || !d.now.Before(e.due)
	})
}

// forgettable reports whether a record may end: no balancer has the instance.
func (d *traffic) forgettable(m *member) bool { return d.allEntries(m, d.ignored) }

// enter updates all entries of a record for a change of its phase (LB-1).
func (d *traffic) enter(m *member, r *store.Instance) {
	if len(r.Traffic) == 0 || r.Phase == m.Record.Phase {
		return
	}
	switch r.Phase {
	case store.Draining:
		if !m.noticed() { // an instance with a notice serves until its replacement does
			r.Traffic = d.allTurned(r.Traffic, store.TrafficDraining, d.limit(m))
		}
	case store.Deleting:
		r.Traffic = d.allTurned(r.Traffic, store.TrafficLeaving, d.limit(m))
	default:
	}
}

// limit returns how long to wait for a balancer before a machine goes: drain.timeout, or no time
// for a failed instance.
func (d *traffic) limit(m *member) time.Duration {
	if m.dead() || m.failing() {
		return 0
	}
	return m.Record.Spec.Drain.Timeout.D()
}

// allTurned returns the entries in another state. An entry that is leaving stays so.
func (d *traffic) allTurned(entries []store.Traffic, to store.TrafficState, limit time.Duration) []store.Traffic {
	out := slices.Clone(entries)
	for i := range out {
		if out[i].State != store.TrafficLeaving && out[i].State != to {
			out[i] = d.turned(out[i], to, limit)
		}
	}
	return out
}

// turned returns an entry in another state, with the given limit for the wait; 0: no limit.
func (d *traffic) turned(t store.Traffic, to store.TrafficState, limit time.Duration) store.Traffic {
	t.State, t.Since, t.Timer = to, d.now.UTC(), nil
	if limit > 0 {
		timer := d.timer(limit)
		t.Timer = &timer
	}
	return t
}

// reached returns the address at which a load balancer reaches an instance, or why it is unknown.
func (d *traffic) reached(m *member, use *store.LoadBalancer) (address string, port int, problem balancerHas) {
	if m.Record.Address == "" {
		return "", 0, balancerHas{state: store.BalancerNoAddress}
	}
	address, own := balancer.SplitAddress(m.Record.Address)
	text, names := string(use.Port), []string(nil)
	if text == "" {
		text = own
	} else {
		names, _ = store.Placeholders(text)
	}
	for _, name := range names {
		value, there := m.Record.Spec.Vars[name]
		if !there && name == "port" {
			value = own
		}
		text = strings.ReplaceAll(text, "${"+name+"}", value)
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 {
		return "", 0, balancerHas{store.BalancerNoPort, fmt.Sprintf(
			"load_balancers: port %q of %s is no port of its address %s", use.Port, use.Name, m.Record.Address)}
	}
	return address, port, balancerHas{}
}

// wanted returns the entries that a record should have, the existing ones unchanged, and what
// prevents others. More is what has to be written.
func (d *traffic) wanted(m *member) (entries []store.Traffic, problems map[string]balancerHas, changed bool) {
	problems = map[string]balancerHas{}
	entries = slices.Clone(m.Record.Traffic)
	for i := range d.spec.LoadBalancers {
		use := &d.spec.LoadBalancers[i]
		if d.s.Balancers[use.Name] == nil {
			problems[use.Name] = balancerHas{state: store.BalancerUnconfigured}
			continue
		}
		address, port, problem := d.reached(m, use)
		at := slices.IndexFunc(entries, func(t store.Traffic) bool { return t.Balancer == use.Name })
		switch {
		case problem.state != "":
			problems[use.Name] = problem
		case at < 0:
			entries = append(entries, d.turned(store.Traffic{Balancer: use.Name, Address: address, Port: port},
				store.TrafficJoining, d.spec.MaxOpening.D()))
			changed = true
		case entries[at].State == store.TrafficLeaving: // it is added again once it is gone
		case entries[at].Address != address || entries[at].Port != port:
			entries[at] = d.turned(entries[at], store.TrafficLeaving, 0)
			changed = true
		case entries[at].State == store.TrafficDraining && !m.quiet:
			entries[at] = d.turned(entries[at], store.TrafficJoining, d.spec.MaxOpening.D())
			changed = true
		}
	}
	slices.SortFunc(entries, func(a, b store.Traffic) int { return strings.Compare(a.Balancer, b.Balancer) })
	return entries, problems, changed
}

func (d *traffic) entryOf(m *member, name string) entry {
	i := slices.IndexFunc(m.Record.Traffic, func(t store.Traffic) bool { return t.Balancer == name })
	if i < 0 {
		return entry{Traffic: store.Traffic{Balancer: name}, of: m.ID(), seen: d.s.Balancers[name]}
	}
	return m.entry(&d.view, i)
}

// downReason is what the balancer says of the health of a member.
func (e *entry) downReason() string {
	for _, t := range e.seen.listing(e.of).Targets {
		for _, st := range t.Members {
			if st.Health == balancer.Down && st.Why != "" {
				return st.Why
			}
		}
	}
	return ""
}
