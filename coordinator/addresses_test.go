package coordinator_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/store"
)

// unnamed is a load balancer that knows members by their addresses alone, and has one that was
// removed drain for a while, as Amazon's target groups do.
type unnamed struct {
	drains time.Duration

	mu      sync.Mutex
	members map[string]time.Time // by address: until when it drains; zero: it does not
	calls   []string
}

func place(m balancer.Member) string { return fmt.Sprintf("%s:%d", m.Address, m.Port) }

func (b *unnamed) Capabilities() balancer.Capabilities {
	return balancer.Capabilities{CallTimeout: 5 * time.Second, Health: true, DrainEnds: true, Leaves: true}
}

func (b *unnamed) Validate(balancer.Use) error { return nil }

func (b *unnamed) Add(_ context.Context, _ string, m balancer.Member) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, "add "+m.Instance)
	b.members[place(m)] = time.Time{}
	return nil
}

func (b *unnamed) Drain(ctx context.Context, shard string, m balancer.Member) error {
	return b.Remove(ctx, shard, m)
}

func (b *unnamed) Remove(_ context.Context, _ string, m balancer.Member) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until, there := b.members[place(m)]; there && until.IsZero() {
		b.calls = append(b.calls, "remove "+m.Instance)
		b.members[place(m)] = time.Now().Add(b.drains)
	}
	return nil
}

func (b *unnamed) List(_ context.Context, _ string, recorded []balancer.Member) (balancer.Listing, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := map[string]balancer.Member{}
	for _, m := range recorded {
		of[place(m)] = m
	}
	target := balancer.Target{Name: "front"}
	for at, until := range b.members {
		st := balancer.Status{Member: of[at], State: balancer.Ready, Health: balancer.Up}
		switch {
		case !until.IsZero() && time.Now().After(until):
			delete(b.members, at)
			continue
		case !until.IsZero():
			st.State, st.Health = balancer.Draining, balancer.HealthUnknown
		}
		if st.Instance == "" {
			target.Foreign++
			continue
		}
		target.Members = append(target.Members, st)
	}
	return balancer.Listing{Targets: []balancer.Target{target}}, nil
}

func (b *unnamed) use(_ *coordinator.Config, deps *coordinator.Deps) {
	deps.Balancers = map[string]balancer.Balancer{"front": b}
}

// after returns the calls after the first one like this.
func (b *unnamed) after(call string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.calls, call)
	return slices.Clone(b.calls[i+1:])
}

// A machine gets the address of a dead one while the load balancer still drains that. It joins, is
// confirmed and is not taken out again, and the record of the dead one ends. The IDs of the two
// come in both orders.
//
// proves LB-1, LB-2, LB-3
func TestAnAddressThatIsUsedAgain(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.address = func(string) string { return "10.0.0.1:80" }
		b := &unnamed{drains: 5 * time.Minute, members: map[string]time.Time{}}
		w.start("one", b.use)
		g := w.group("web", 1)
		g.LoadBalancers = []store.LoadBalancer{{Name: "front"}}
		g.Flap.Failures = 100
		w.apply(g)
		dead := w.up(1)[0]
		orders := map[bool]int{}
		for orders[false] < 2 || orders[true] < 2 {
			w.pass(time.Minute)
			w.provider.Crash(dead, "exit 1")
			w.until(time.Minute, "another one is in its place", func() bool {
				return w.settled(1) && w.ids()[0] != dead
			})
			next := w.ids()[0]
			w.pass(10 * time.Second)
			if in := w.instance(next); len(in.Traffic) != 1 || in.Traffic[0].State != store.TrafficServing {
				t.Fatalf("%s has the entries %+v", next, in.Traffic)
			}
			if calls := b.after("add " + next); len(calls) > 0 {
				t.Fatalf("after %s was added in place of %s: %q", next, dead, calls)
			}
			orders[next < dead]++
			dead = next
		}
	})
}
