package swarm

import (
	"fmt"
	"net/rpc"

	"github.com/leasehold/leasehold/provider/fake"
)

// Control causes faults in a swarm.
type Control struct{ client *rpc.Client }

// Dial connects to the swarm that is served at a socket.
func Dial(socket string) (*Control, error) {
	client, err := rpc.Dial("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("find the swarm: %w", err)
	}
	return &Control{client}, nil
}

// Close closes the connection; the swarm continues.
func (c *Control) Close() error { return c.client.Close() }

// Lie makes List lie from now on. Truth is a kind of lie, too.
func (c *Control) Lie(l fake.Lie) error { return c.client.Call("Control.Lie", l, new(bool)) }

// Crash crashes machines: they are listed as crashed, and their agents are gone.
func (c *Control) Crash(instances ...string) error {
	return c.client.Call("Control.Crash", instances, new(bool))
}

// Cut disconnects machines: their streams break without a goodbye, and they reach nothing.
func (c *Control) Cut(instances ...string) error {
	return c.client.Call("Control.Cut", instances, new(bool))
}

// Mend connects machines again.
func (c *Control) Mend(instances ...string) error {
	return c.client.Call("Control.Mend", instances, new(bool))
}

// Count is how many machines there are and were.
type Count struct {
	Existing []string
	Made     int // ever created
	Lists    int // ever requested
}

// Count counts the machines.
func (c *Control) Count() (Count, error) {
	var n Count
	err := c.client.Call("Control.Count", false, &n)
	return n, err
}

// service is Control's server side.
type service struct{ s *swarm }

func (v *service) Lie(l fake.Lie, _ *bool) error {
	v.s.cloud.Lie(l)
	return nil
}

func (v *service) Crash(instances []string, _ *bool) error {
	for _, id := range instances {
		v.s.wire(id).set(true) // a machine that crashes sends no goodbye
		if !v.s.cloud.Crash(id, "the test has crashed it") {
			return fmt.Errorf("crash %s: no such machine is running", id)
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
