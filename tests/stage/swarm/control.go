package swarm

import (
	"fmt"
	"net/rpc"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/memprovider"
)

// Control makes things go wrong in a swarm.
type Control struct{ client *rpc.Client }

// Dial finds the swarm that is served at a socket.
func Dial(socket string) (*Control, error) {
	client, err := rpc.Dial("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("find the swarm: %w", err)
	}
	return &Control{client}, nil
}

// Close lets go of the swarm, which goes on.
func (c *Control) Close() error { return c.client.Close() }

// Lie has List lie from now on. The truth is a lie like any other.
func (c *Control) Lie(l Lie) error { return c.client.Call("Control.Lie", l, new(bool)) }

// Crash ends machines otherwise than in order: they are listed as crashed, and their agents are
// gone.
func (c *Control) Crash(instances ...string) error {
	return c.client.Call("Control.Crash", instances, new(bool))
}

// Cut takes machines off the network: their streams break without a goodbye, and they reach nobody.
func (c *Control) Cut(instances ...string) error {
	return c.client.Call("Control.Cut", instances, new(bool))
}

// Mend puts machines back on the network.
func (c *Control) Mend(instances ...string) error {
	return c.client.Call("Control.Mend", instances, new(bool))
}

// Count is what there is and was of machines.
type Count struct {
	Existing []string
	Made     int // ever
	Lists    int // ever asked for
}

// Count counts the machines.
func (c *Control) Count() (Count, error) {
	var n Count
	err := c.client.Call("Control.Count", false, &n)
	return n, err
}

// service is Control's other side.
type service struct{ s *swarm }

func (v *service) Lie(l Lie, _ *bool) error {
	s := v.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unlied != nil {
		s.unlied()
		s.unlied = nil
	}
	if l.Kind == Truth && l.Delay == 0 {
		return nil
	}
	var before []provider.Machine
	s.unlied = s.cloud.Inject(memprovider.Fault{
		Call: memprovider.CallList, Times: l.Times, Delay: l.Delay,
		Answer: func(truth []provider.Machine) []provider.Machine {
			if before == nil {
				before = truth
			}
			return l.Apply(truth, before)
		},
	})
	return nil
}

func (v *service) Crash(instances []string, _ *bool) error {
	for _, id := range instances {
		v.s.wire(id).set(true) // a machine that crashes says no goodbye
		if !v.s.cloud.Crash(id, "the test has crashed it") {
			return fmt.Errorf("crash %s: there is no such machine up", id)
		}
	}
	return nil
}

func (v *service) Cut(instances []string, _ *bool) error {
	for _, id := range instances {
		v.s.wire(id).set(true)
	}
	return nil
}

func (v *service) Mend(instances []string, _ *bool) error {
	for _, id := range instances {
		v.s.wire(id).set(false)
	}
	return nil
}

func (v *service) Count(_ bool, n *Count) error {
	for _, l := range v.s.cloud.Ledger() {
		n.Made += l.Made
	}
	n.Existing, n.Lists = v.s.cloud.Existing(), v.s.cloud.Lists()
	return nil
}
