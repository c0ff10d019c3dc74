package leader

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/balancer"
)

// traffic is a term's work with load balancers. Each has its own queue and its own Lists, so that a
// hanging one delays no other (LB-3).
type traffic struct {
	names []string // in order
	of    map[string]*members
}

// members is the work with one load balancer.
type members struct {
	capabilities balancer.Capabilities
	lists        Lists
	waiting      []plan.MemberCall // in order of arrival
	running      int
}

func newTraffic(of map[string]balancer.Capabilities) traffic {
	t := traffic{names: slices.Sorted(maps.Keys(of)), of: map[string]*members{}}
	for name, c := range of {
		t.of[name] = &members{capabilities: c}
	}
	return t
}

// askMembers queues the calls of a plan, and makes Lists due soon for the load balancers that the
// plan waits for. Calls for one member never overlap.
func (l *Leader) askMembers(p *plan.Plan) {
	for _, call := range p.MemberCalls {
		if m := l.traffic.of[call.Balancer]; m != nil && l.cfg.Evidence.BusyMember(call) {
			m.waiting = append(m.waiting, call)
		}
	}
	for name := range p.Watched {
		if m := l.traffic.of[name]; m != nil {
			m.lists.Request()
		}
	}
}

// beginMemberLists begins the Lists that are due.
func (l *Leader) beginMemberLists(now time.Time, v View) {
	for _, name := range l.traffic.names {
		m := l.traffic.of[name]
		if at, ok := m.lists.Next(); ok && !at.After(now) {
			m.lists.Begin(now)
			l.do(ListMembers{
				Balancer: name, Recorded: l.cfg.Evidence.Members(name, v.Content), Begun: now,
				Deadline: now.Add(m.capabilities.CallTimeout),
			})
		}
	}
}

// errTaken is why a call is not made: the member's address belongs to another one by now.
var errTaken = errors.New("another instance has the address")

// beginMemberCalls begins the calls whose turn it is. A call whose record has changed since it was
// planned is dropped: it is planned again.
func (l *Leader) beginMemberCalls(now time.Time, v View) {
	for _, name := range l.traffic.names {
		m := l.traffic.of[name]
		for m.running < callsAtOnce && len(m.waiting) > 0 {
			call := m.waiting[0]
			m.waiting = m.waiting[1:]
			if v.Content.Instances[call.Member.Instance].Modified != call.Record {
				l.cfg.Evidence.MemberAnswered(call, false, nil)
				continue
			}
			if call.Record != 0 && l.cfg.Evidence.Taken(call) {
				l.cfg.Evidence.MemberAnswered(call, false, errTaken)
				continue
			}
			m.running++
			l.do(CallMember{Call: call, Begun: now, Deadline: now.Add(m.capabilities.CallTimeout)})
		}
	}
}

// balancerListed handles the outcome of a List. While a target does not answer, Lists repeat soon:
// what it forgot is restored as soon as it answers.
func (l *Leader) balancerListed(now time.Time, v View, e BalancerListed) {
	m := l.traffic.of[e.Balancer]
	whole := l.cfg.Evidence.BalancerListed(e.Balancer, e.Begun, e.Listing, e.Err, v.Content)
	if _, throttled := provider.RetryAfter(e.Err); !whole && !throttled {
		m.lists.Request()
	}
	m.lists.End(now, v.settings(), e.Err)
}

// balancerAnswered handles the outcome of a call. Only a List shows its effect.
func (l *Leader) balancerAnswered(e BalancerAnswered) {
	m := l.traffic.of[e.Call.Balancer]
	m.running--
	l.cfg.Evidence.MemberAnswered(e.Call, e.Made, e.Err)
	if e.Made {
		m.lists.Request()
	}
}

// nextMemberList returns when the next List is to begin, or zero.
func (l *Leader) nextMemberList() (next time.Time) {
	for _, name := range l.traffic.names {
		if at, ok := l.traffic.of[name].lists.Next(); ok && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}
