package swarm

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// Asked is a call of a replica, as the provider sees it. Lists are left out.
type Asked struct {
	Replica  string
	Call     fake.Call
	Instance string
	Begun    history.Time
	Ended    history.Time // 0: in progress, even if its caller has gone
}

// Calls returns the provider's calls since a time, and those in progress, in the order of their
// start.
func (c *Control) Calls(since history.Time) ([]Asked, error) {
	var out []Asked
	err := c.client.Call("Control.Calls", since, &out)
	return out, err
}

// Slowness is the additional duration of calls of a kind.
type Slowness struct {
	Call fake.Call
	By   time.Duration
}

// Slow makes calls of a kind that start from now on wait before they do anything; 0: no wait. They
// continue after their caller has gone.
func (c *Control) Slow(call fake.Call, by time.Duration) error {
	return c.client.Call("Control.Slow", Slowness{call, by}, new(bool))
}

// Ledger is what the provider knows about every instance of its calls.
func (c *Control) Ledger() ([]fake.Life, error) {
	var out []fake.Life
	err := c.client.Call("Control.Ledger", false, &out)
	return out, err
}

func (v *service) Calls(since history.Time, out *[]Asked) error {
	*out = v.s.calls.since(since)
	return nil
}

func (v *service) Slow(how Slowness, _ *bool) error {
	s := v.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if quick := s.slow[how.Call]; quick != nil {
		quick()
	}
	delete(s.slow, how.Call)
	if how.By > 0 {
		s.slow[how.Call] = s.cloud.Inject(fake.Fault{Call: how.Call, Delay: how.By})
	}
	return nil
}

func (v *service) Ledger(_ bool, out *[]fake.Life) error {
	*out = v.s.cloud.Ledger()
	return nil
}

// calls records the calls.
type calls struct {
	mu  sync.Mutex
	all []Asked
}

func (c *calls) since(at history.Time) []Asked {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.all), func(a Asked) bool { return a.Begun < at && a.Ended != 0 })
}

func (c *calls) begin(a Asked) (end func()) {
	a.Begun = history.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.all)
	c.all = append(c.all, a)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all[n].Ended = history.Now()
	}
}

// front is the provider as one replica sees it.
type front struct {
	provider.Provider
	replica string
	calls   *calls
}

func (f front) begin(call fake.Call, instance string) (end func()) {
	return f.calls.begin(Asked{Replica: f.replica, Call: call, Instance: instance})
}

func (f front) Create(ctx context.Context, req provider.CreateRequest) (provider.Machine, error) {
	defer f.begin(fake.CallCreate, req.Bootstrap.Instance)()
	return f.Provider.Create(ctx, req)
}

func (f front) Stop(ctx context.Context, shard, instance string, timeout time.Duration) error {
	defer f.begin(fake.CallStop, instance)()
	return f.Provider.Stop(ctx, shard, instance, timeout)
}

func (f front) Delete(ctx context.Context, shard, instance string) error {
	defer f.begin(fake.CallDelete, instance)()
	return f.Provider.Delete(ctx, shard, instance)
}

func (f front) Restart(ctx context.Context, shard, instance, boot string) error {
	defer f.begin(fake.CallRestart, instance)()
	return f.Provider.Restart(ctx, shard, instance, boot)
}
