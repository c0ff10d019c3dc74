package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A group names load balancers, each once, with a port that the leader can know.
//
// proves LB-1
func TestBoundsOfLoadBalancers(t *testing.T) {
	many := func(n int) (list []store.LoadBalancer) {
		for i := range n {
			list = append(list, store.LoadBalancer{Name: "b" + string(rune('a'+i))})
		}
		return list
	}
	for _, good := range [][]store.LoadBalancer{
		nil, many(16),
		{{Name: "web", Port: "80", Weight: 256, Settings: map[string]any{"a": 1}}, {Name: "api", Port: "${port}"}},
		{{Name: "web", Port: "${api_port}"}},
	} {
		g := web()
		g.Vars = map[string]string{"api_port": "81"}
		g.LoadBalancers = good
		if err := g.Validate(); err != nil {
			t.Errorf("%v is refused: %v", good, err)
		}
	}
	for _, test := range []struct {
		list []store.LoadBalancer
		path string
	}{
		{many(17), "load_balancers"},
		{[]store.LoadBalancer{{}}, "load_balancers[0].name"},
		{[]store.LoadBalancer{{Name: "a"}, {Name: "a"}}, "load_balancers[1].name"},
		{[]store.LoadBalancer{{Name: "a", Port: "0"}}, "load_balancers[0].port"},
		{[]store.LoadBalancer{{Name: "a", Port: "65536"}}, "load_balancers[0].port"},
		{[]store.LoadBalancer{{Name: "a", Port: "${dir}"}}, "load_balancers[0].port"},
		{[]store.LoadBalancer{{Name: "a", Port: "${port"}}, "load_balancers[0].port"},
		{[]store.LoadBalancer{{Name: "a", Weight: 257}}, "load_balancers[0].weight"},
		{[]store.LoadBalancer{{Name: "a", Weight: -1}}, "load_balancers[0].weight"},
		{
			[]store.LoadBalancer{{Name: "a", Settings: map[string]any{"x": strings.Repeat("x", 1<<16)}}},
			"load_balancers[0].settings",
		},
	} {
		g := web()
		g.LoadBalancers = test.list
		errs := fieldErrors(g.Validate())
		if len(errs) != 1 || errs[0].Path != test.path || errs[0].Rule != "LB-1" {
			t.Errorf("%v is refused as %v, want %s", test.list, errs, test.path)
		}
	}
	g := web()
	g.Lifecycle, g.LoadBalancers = store.LifecycleTask, many(1)
	if errs := fieldErrors(g.Validate()); len(errs) != 1 || errs[0].Path != "load_balancers" {
		t.Errorf("a task with a load balancer: %v", errs)
	}
}

// A change of the load balancers rolls nothing, and a group without any is stored as releases
// before wrote it.
//
// proves LB-1
func TestLoadBalancersAreNoPartOfTheTemplate(t *testing.T) {
	g := web()
	plain := store.Encode(g)
	before, config := g.InstanceSpec().TemplateHash(), g.InstanceSpec().ConfigHash()
	g.LoadBalancers, g.MaxOpening, g.Heal.OnLoadBalancer = []store.LoadBalancer{{Name: "a", Port: "80"}},
		store.Duration(time.Minute), true
	if g.InstanceSpec().TemplateHash() != before || g.InstanceSpec().ConfigHash() != config {
		t.Error("a load balancer changes the template")
	}
	if strings.Contains(string(plain), "balancer") || strings.Contains(string(plain), "opening") {
		t.Errorf("a group without load balancers is stored as %s", plain)
	}
	back, err := store.ReadGroup(store.Encode(g))
	if err != nil || !slices.EqualFunc(back.LoadBalancers, g.LoadBalancers,
		func(a, b store.LoadBalancer) bool { return a.Name == b.Name && a.Port == b.Port }) ||
		back.MaxOpening != g.MaxOpening || !back.Heal.OnLoadBalancer {
		t.Errorf("comes back as %+v: %v", back, err)
	}
}

// The timers of memberships run as the record's do.
func TestTimersOfTraffic(t *testing.T) {
	i := store.Instance{Traffic: []store.Traffic{
		{Balancer: "a", Timer: &store.Timer{For: store.Duration(time.Minute)}}, {Balancer: "b"},
	}}
	if timers := i.Timers(); len(timers) != 1 || timers[0].Name != store.TimerTraffic("a") {
		t.Errorf("timers: %v", timers)
	}
}
