package reason

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

// TestBalancerStates renders how load balancers have an instance, also as a release before wrote
// it.
func TestBalancerStates(t *testing.T) {
	for _, test := range []struct {
		state      store.BalancerState
		text, want string
	}{
		{"", "it is being added", "it is being added"},
		{store.BalancerUnconfigured, "", "the leading coordinator is not configured with it"},
		{store.BalancerSilent, "no such file", "it does not answer: no such file"},
		{store.BalancerCallFails, "no such file", "no such file"},
		{store.BalancerNoAddress, "", "its provider has not said where it is"},
		{store.BalancerNoPort, "port", "port"},
		{store.BalancerOldAddress, "", "it still has the instance at another address"},
		{store.BalancerAdding, "", "it is being added"},
		{store.BalancerDown, "", "it is down there"},
		{store.BalancerDown, "L4CON", "it is down there: L4CON"},
		{store.BalancerChecking, "", "its checks there have not passed yet"},
		{store.BalancerMissing, "", "it is not there yet"},
		{store.BalancerServes, "", "it serves until another instance does in its place"},
		{store.BalancerRemoving, "", "it is being taken out"},
		{store.BalancerPartSilent, "", "a part of it does not answer"},
		{store.BalancerUncounted, "", "it does not say which connections are left"},
	} {
		b := store.Blocked{Kind: store.BlockedByTraffic, Of: store.BlockedFacts{
			Name: "front", Balancer: test.state, Text: test.text,
		}}
		if got := Why(&b); got != "it leaves load balancer front: "+test.want {
			t.Errorf("%s: %q", test.state, got)
		}
	}
	for _, of := range []store.BlockedFacts{
		{Name: "front", Count: 3, Balancer: store.BalancerConnections}, {Name: "front", Count: 3, Flag: true},
	} {
		b := store.Blocked{Kind: store.BlockedByTraffic, Of: of}
		if got := Why(&b); got != "it leaves load balancer front, with 3 connections left" {
			t.Errorf("%+v: %q", of, got)
		}
	}
}
