package sim

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// Balancer is one of the load balancers of a world: one target, which checks its members.
type Balancer struct {
	Name  string
	Call  fake.Range // duration of a call or a List
	Check fake.Range // from being added to being up, or from the end of a machine to being down
	Use   fake.Range // how long the last connection of a draining member lasts
}

// balancerTimeout is the timeout of a call.
const balancerTimeout = 5 * time.Second

// traffic is the state of a load balancer.
type traffic struct {
	w       *World
	cfg     Balancer
	members map[string]*served // by instance

	deafUntil time.Duration // it answers nothing before
	slowUntil time.Duration // every call takes the longest time before
	disliked  string        // the instance that Lists report as down
	liesUntil time.Duration // Lists report every member as down before
}

// served is a member.
type served struct {
	balancer.Member
	state balancer.State
	up    time.Duration // not up before
	idle  time.Duration // no connection after, once it drains
}

func newTraffic(w *World, cfg Balancer) *traffic {
	for _, r := range []struct {
		set *fake.Range
		def fake.Range
	}{
		{&cfg.Call, fake.Between(5*time.Millisecond, 50*time.Millisecond)},
		{&cfg.Check, fake.Between(200*time.Millisecond, 2*time.Second)},
		{&cfg.Use, fake.Between(0, 5*time.Second)},
	} {
		if *r.set == (fake.Range{}) {
			*r.set = r.def
		}
	}
	return &traffic{w: w, cfg: cfg, members: map[string]*served{}}
}

// balancersOf returns the load balancers of a world: the configured ones, and a default one for
// each other name that a group uses.
func balancersOf(w *World) map[string]*traffic {
	all := map[string]*traffic{}
	for _, b := range w.cfg.Balancers {
		all[b.Name] = newTraffic(w, b)
	}
	for i := range w.cfg.Groups {
		for _, use := range w.cfg.Groups[i].LoadBalancers {
			if all[use.Name] == nil {
				all[use.Name] = newTraffic(w, Balancer{Name: use.Name})
			}
		}
	}
	return all
}

// balancerNames returns their names, in order.
func (w *World) balancerNames() []string { return slices.Sorted(maps.Keys(w.balancers)) }

func (w *World) balancerCapabilities() map[string]balancer.Capabilities {
	all := map[string]balancer.Capabilities{}
	for name := range w.balancers {
		all[name] = balancer.Capabilities{
			CallTimeout: balancerTimeout, Named: true, Health: true, Connections: true, DrainEnds: true, Weights: true,
		}
	}
	return all
}

// takes returns the duration of a call, and whether it is answered.
func (b *traffic) takes() (d time.Duration, err error) {
	switch {
	case b.w.clock < b.deafUntil:
		return balancerTimeout, fake.ErrTimeout
	case b.w.clock < b.slowUntil:
		return balancerTimeout - time.Millisecond, nil
	}
	return b.w.chance.within(b.cfg.Call), nil
}

// listMembers answers a List.
func (t *term) listMembers(c leader.ListMembers) {
	b := t.w.balancers[c.Balancer]
	d, err := b.takes()
	b.w.after(d/2, func() {
		var l balancer.Listing
		if err == nil {
			l = b.listing()
		}
		t.after(d/2, true, func() {
			t.step(leader.BalancerListed{Balancer: c.Balancer, Begun: c.Begun, Listing: l, Err: err})
		})
	})
}

// listing returns the balancer's members.
func (b *traffic) listing() balancer.Listing {
	target := balancer.Target{Name: b.cfg.Name}
	for _, id := range slices.Sorted(maps.Keys(b.members)) {
		m := b.members[id]
		st := balancer.Status{Member: m.Member, State: m.state, Health: balancer.Up}
		switch {
		case b.w.clock < b.liesUntil || id == b.disliked || !b.w.Serves(id):
			st.Health = balancer.Down
		case b.w.clock < m.up:
			st.Health = balancer.Checking
		}
		if m.state == balancer.Ready || b.w.clock < m.idle {
			st.Connections = 1
		}
		target.Members = append(target.Members, st)
	}
	return balancer.Listing{Targets: []balancer.Target{target}}
}

// callMember calls a balancer. A call that has begun takes effect even if the term has ended.
func (t *term) callMember(c leader.CallMember) {
	b, call := t.w.balancers[c.Call.Balancer], c.Call
	for _, condition := range call.Conditions {
		if !t.w.db.satisfies(condition) || t.w.db.down {
			t.step(leader.BalancerAnswered{Call: call, Err: store.ErrConflict})
			return
		}
	}
	d, err := b.takes()
	if err == nil && b.w.chance.happens(t.w.balancersFail) {
		err = errors.New("the balancer has trouble")
	}
	effect := err == nil || b.w.clock >= b.deafUntil && b.w.chance.happens(50)
	if t.w.cfg.Observer.Membership != nil {
		t.w.cfg.Observer.Membership(t.w.Now(), call)
	}
	b.w.after(d/2, func() {
		if effect {
			b.do(call)
		}
		t.after(d/2, false, func() { t.step(leader.BalancerAnswered{Call: call, Made: true, Err: err}) })
	})
}

// do makes a call take effect.
func (b *traffic) do(call plan.MemberCall) {
	m := b.members[call.Member.Instance]
	here := m != nil && m.Address == call.Member.Address && m.Port == call.Member.Port
	switch call.Kind {
	case plan.MemberAdd:
		if !here {
			m = &served{up: b.w.clock + b.w.chance.within(b.cfg.Check)}
			b.members[call.Member.Instance] = m
		}
		m.Member, m.state = call.Member, balancer.Ready
	case plan.MemberDrain:
		if here && m.state == balancer.Ready {
			m.state, m.idle = balancer.Draining, b.w.clock+b.w.chance.within(b.cfg.Use)
		}
	case plan.MemberRemove:
		if here {
			delete(b.members, call.Member.Instance)
		}
	}
}

// BalancerForgets makes a balancer lose all of its members, as by a reload.
func (w *World) BalancerForgets(name string) {
	w.note("load balancer %s forgets its members", name)
	clear(w.balancers[name].members)
}

// BalancerSilent keeps a load balancer from answering for a while.
func (w *World) BalancerSilent(name string, d time.Duration) {
	w.note("load balancer %s does not answer for %s", name, d)
	w.balancers[name].deafUntil = w.clock + d
}

// BalancerSlow makes each call to a balancer take the longest time for a while.
func (w *World) BalancerSlow(name string, d time.Duration) {
	w.note("load balancer %s is slow for %s", name, d)
	w.balancers[name].slowUntil = w.clock + d
}

// BalancerLies makes a balancer report all of its members as down for a while.
func (w *World) BalancerLies(name string, d time.Duration) {
	w.note("load balancer %s calls all down for %s", name, d)
	w.balancers[name].liesUntil = w.clock + d
}

// BalancerDislikes makes a balancer report one member as down.
func (w *World) BalancerDislikes(name, instance string) {
	w.note("load balancer %s calls %s down", name, instance)
	w.balancers[name].disliked = instance
}

// BalancersFail sets the percentage of calls to load balancers that fail.
func (w *World) BalancersFail(percent int) { w.balancersFail = percent }

// RemoveMember removes a member from a balancer, as an operator would.
func (w *World) RemoveMember(name, instance string) {
	w.note("an operator takes %s out of load balancer %s", instance, name)
	delete(w.balancers[name].members, instance)
}

// InTraffic returns the truth about an instance: whether a balancer opens new connections to it,
// and whether some are in use.
func (w *World) InTraffic(name, instance string) (begins, inUse bool) {
	m := w.balancers[name].members[instance]
	if m == nil {
		return false, false
	}
	return m.state == balancer.Ready, m.state == balancer.Ready || w.clock < m.idle
}

// Members returns the members of a balancer, in order.
func (w *World) Members(name string) []string {
	return slices.Sorted(maps.Keys(w.balancers[name].members))
}
