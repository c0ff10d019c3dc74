package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// What a load balancer cannot be is refused with its value and with what is allowed. Settings may
// have 64 KiB in JSON.
//
// proves LB-1
func TestWhatLoadBalancersMaySay(t *testing.T) {
	large := func(more int) map[string]any {
		bytes := 64<<10 - len(store.Encode(map[string]any{"x": ""})) + more
		return map[string]any{"x": strings.Repeat("x", bytes)}
	}
	for _, test := range []struct {
		list []store.LoadBalancer
		want string // how the message begins
	}{
		{[]store.LoadBalancer{{Name: "a", Settings: large(0)}}, ""},
		{
			[]store.LoadBalancer{{Name: "a", Settings: large(1)}},
			"load_balancers[0].settings: map[x:xxx",
		},
		{[]store.LoadBalancer{{Name: "A"}}, `load_balancers[0].name: "A": must be the name of a load balancer of the ` +
			`coordinators (LB-1)`},
		{
			[]store.LoadBalancer{{Name: "a", Weight: 257}},
			"load_balancers[0].weight: 257: must be 0 to 256; 0 is the balancer's own (LB-1)",
		},
		{
			[]store.LoadBalancer{{Name: "a"}, {Name: "b"}, {Name: "a"}},
			`load_balancers[2].name: "a": must be a name other than load_balancers[0] has (LB-1)`,
		},
		{[]store.LoadBalancer{{Name: "a", Port: "${port"}}, `load_balancers[0].port: "${port": must be closed with } (LB-1)`},
	} {
		g := web()
		g.LoadBalancers = test.list
		got := refusalOf(g)
		if !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") || strings.Contains(got, "\n") {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// A variable that is not known is refused with those that are, in order, each once: a variable of
// vars may be named like the port of the address.
//
// proves LB-1
func TestVariablesOfPortsOfLoadBalancers(t *testing.T) {
	g := web()
	g.Vars = map[string]string{"zeta": "1", "port": "80", "api_port": "81"}
	g.LoadBalancers = []store.LoadBalancer{{Name: "a", Port: "${dir}"}}
	errs := fieldErrors(g.Validate())
	if len(errs) != 1 {
		t.Fatalf("%v", errs)
	}
	const want = "load_balancers[0].port: ${dir}: must be a variable of vars or the port of the address " +
		"(api_port, port, zeta) (LB-1)"
	if e := errs[0]; e.Error() != want || e.Name != "dir" || !slices.Equal(e.Known, []string{"api_port", "port", "zeta"}) {
		t.Errorf("%q, name %q, known %q", e, e.Name, e.Known)
	}
}

// An instance is wanted in a load balancer until it is to leave it.
//
// proves LB-1
func TestStatesOfTraffic(t *testing.T) {
	for state, wanted := range map[store.TrafficState]bool{
		store.TrafficJoining: true, store.TrafficServing: true, store.TrafficDraining: false, store.TrafficLeaving: false,
	} {
		if state.Wanted() != wanted {
			t.Errorf("%s: wanted is %t", state, state.Wanted())
		}
	}
}

// A group's use of a load balancer is found by its name.
func TestLoadBalancerOfAName(t *testing.T) {
	g := store.Group{LoadBalancers: []store.LoadBalancer{{Name: "a", Weight: 1}, {Name: "b", Weight: 2}}}
	for name, want := range map[string]*store.LoadBalancer{
		"a": &g.LoadBalancers[0], "b": &g.LoadBalancers[1], "c": nil, "": nil,
	} {
		if got := g.Balancer(name); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}
