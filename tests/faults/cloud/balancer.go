package cloud

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/tests/faults/history"
	"github.com/leasehold/leasehold/tests/stage/swarm"
)

// lastConnection is how long the last connection of a member that drains goes on.
const lastConnection = 700 * time.Millisecond

// traffic is the load balancer of a cloud: one target, whose checks see what really runs. It
// records what becomes of its members before anyone is told.
type traffic struct {
	c *Cloud

	mu      sync.Mutex
	members map[string]*served // by instance
	fault   *BalancerFault
	calls   int
}

// served is a member.
type served struct {
	balancer.Member
	state balancer.State
	idle  time.Time // no connection after, once it drains
}

// BalancerFault is what is wrong with the load balancer.
type BalancerFault struct {
	Silent bool          // calls hang, and do nothing
	Fails  bool          // every second call that changes something fails
	Done   bool          // what a call that fails asks for is done all the same
	Late   time.Duration // as much later
	Down   bool          // Lists call every member down
}

var errTraffic = errors.New("the load balancer has trouble, try again")

// DisturbBalancer causes a fault of the load balancer until it is lifted, another one begins, or
// all heal.
func (c *Cloud) DisturbBalancer(f BalancerFault) (lift func()) {
	t := c.traffic
	t.mu.Lock()
	defer t.mu.Unlock()
	now := &f
	t.fault = now
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.fault == now {
			t.fault = nil
		}
	}
}

// BalancerForgets has the load balancer lose its members, as by a restart.
func (c *Cloud) BalancerForgets() {
	c.traffic.mu.Lock()
	defer c.traffic.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(c.traffic.members)) {
		c.traffic.drop(id, "")
	}
}

// InService returns the members that get new connections, in order.
func (c *Cloud) InService() []string {
	c.traffic.mu.Lock()
	defer c.traffic.mu.Unlock()
	return c.traffic.ready()
}

// Members returns all members, in order.
func (c *Cloud) Members() []string {
	c.traffic.mu.Lock()
	defer c.traffic.mu.Unlock()
	return slices.Sorted(maps.Keys(c.traffic.members))
}

// RemoveMember takes a member out by hand, as an operator of the load balancer may.
func (c *Cloud) RemoveMember(instance string) {
	c.traffic.mu.Lock()
	defer c.traffic.mu.Unlock()
	c.traffic.drop(instance, "")
}

func (t *traffic) note(instance string, what history.MembershipStep, replica string) {
	t.c.cfg.Log.Add(history.Event{Membership: &history.Membership{Instance: instance, What: what, Replica: replica}})
}

// drop removes a member. t.mu must be held, here and below.
func (t *traffic) drop(instance, replica string) {
	if t.members[instance] == nil {
		return
	}
	delete(t.members, instance)
	t.note(instance, history.Leaves, replica)
}

func (t *traffic) ready() []string {
	var ids []string
	for id, m := range t.members {
		if m.state == balancer.Ready {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (t *traffic) add(m balancer.Member, replica string) {
	now := t.members[m.Instance]
	if now == nil || now.state != balancer.Ready || now.Address != m.Address || now.Port != m.Port {
		t.note(m.Instance, history.Serves, replica)
	}
	t.members[m.Instance] = &served{Member: m, state: balancer.Ready}
}

func (t *traffic) drain(m balancer.Member, replica string) {
	if now := t.members[m.Instance]; now != nil && now.state == balancer.Ready && now.Address == m.Address {
		now.state, now.idle = balancer.Draining, time.Now().Add(lastConnection)
		t.note(m.Instance, history.Drains, replica)
	}
}

func (t *traffic) remove(m balancer.Member, replica string) {
	if now := t.members[m.Instance]; now != nil && now.Address == m.Address {
		t.drop(m.Instance, replica)
	}
}

// Traffic is the load balancer's server side: the methods of its contract.
type Traffic struct{ t *traffic }

// Add adds a member.
func (s *Traffic) Add(c swarm.MemberCall, a *swarm.MemberAnswer) error {
	return s.t.change("add", c, a, s.t.add)
}

// Drain drains a member.
func (s *Traffic) Drain(c swarm.MemberCall, a *swarm.MemberAnswer) error {
	return s.t.change("drain", c, a, s.t.drain)
}

// Remove removes a member.
func (s *Traffic) Remove(c swarm.MemberCall, a *swarm.MemberAnswer) error {
	return s.t.change("remove", c, a, s.t.remove)
}

// List lists the members.
func (s *Traffic) List(c swarm.MemberCall, a *swarm.MemberAnswer) error {
	t, began := s.t, history.Now()
	t.mu.Lock()
	f := t.fault
	if f != nil && f.Silent {
		t.mu.Unlock()
		t.hang(c.Left)
		a.Err = errTraffic.Error()
		return nil
	}
	defer t.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(t.members)) {
		m := t.members[id]
		st := balancer.Status{Member: m.Member, State: m.state, Health: balancer.Up}
		if f != nil && f.Down || !t.c.serves(id) {
			st.Health = balancer.Down
		}
		if m.state == balancer.Ready || time.Now().Before(m.idle) {
			st.Connections = 1
		}
		a.Members = append(a.Members, st)
	}
	t.c.cfg.Log.Add(history.Event{Membership: &history.Membership{
		What: history.Listed, Replica: c.Replica, Ready: t.ready(), Began: began,
	}})
	return nil
}

// change does what a call asks for, unless a fault has it otherwise.
func (t *traffic) change(call string, c swarm.MemberCall, a *swarm.MemberAnswer,
	do func(m balancer.Member, replica string),
) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
	f := t.fault
	switch {
	case f != nil && f.Silent:
		t.mu.Unlock()
		t.hang(c.Left)
		t.mu.Lock()
	case f == nil || !f.Fails || t.calls%2 == 0:
		do(c.Member, c.Replica)
		return nil
	case f.Done && f.Late == 0:
		do(c.Member, c.Replica)
	case f.Done:
		t.c.late.Go(func() {
			t.hang(f.Late)
			t.mu.Lock()
			defer t.mu.Unlock()
			do(c.Member, "")
		})
	}
	a.Err = errTraffic.Error()
	t.c.cfg.Log.Add(history.Event{Membership: &history.Membership{
		Instance: c.Member.Instance, What: history.Failed, Replica: c.Replica, Call: call,
	}})
	return nil
}

// hang waits, or until the cloud is closed.
func (t *traffic) hang(d time.Duration) {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-late.C:
	case <-t.c.base.Done():
	}
}

// serves reports whether a machine would answer a request.
func (c *Cloud) serves(instance string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.machines[instance]
	return m != nil && m.up && m.booted && m.thawed == nil
}
