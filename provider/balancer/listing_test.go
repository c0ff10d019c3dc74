package balancer_test

import (
	"errors"
	"testing"

	"github.com/leasehold/leasehold/provider/balancer"
)

// The conclusions from how a balancer's targets list one instance.
//
// proves LB-2, LB-3
func TestMembership(t *testing.T) {
	m := balancer.Member{Instance: "i", Address: "10.0.0.1", Port: 80, Use: balancer.Use{Weight: 5}}
	has := func(s balancer.State, h balancer.Health, connections int) balancer.Target {
		return balancer.Target{Members: []balancer.Status{
			{
				Member: balancer.Member{Instance: "another", Address: "10.0.0.9", Port: 80}, State: balancer.Ready,
				Health: balancer.Up,
			},
			{Member: m, State: s, Health: h, Connections: connections},
		}}
	}
	elsewhere := func() balancer.Target {
		out := has(balancer.Ready, balancer.Up, 0)
		out.Members[1].Port = 81
		return out
	}
	light := has(balancer.Ready, balancer.Up, 0)
	light.Members[1].Weight = 1
	twice := has(balancer.Ready, balancer.Up, 0)
	twice.Members = append(twice.Members, twice.Members[1])
	half := has(balancer.Draining, balancer.Up, 0)
	half.Members = append(half.Members, twice.Members[1])
	silent, none := balancer.Target{Err: errors.New("it hangs")}, balancer.Target{}
	up := has(balancer.Ready, balancer.Up, 1)
	type flags struct{ confirmed, inPlace, leaving, drained, gone, unhealthy bool }
	for name, test := range map[string]struct {
		targets []balancer.Target
		want    flags
	}{
		"up everywhere":         {[]balancer.Target{up, up}, flags{confirmed: true, inPlace: true}},
		"up where it is seen":   {[]balancer.Target{up, silent}, flags{confirmed: true, inPlace: true}},
		"no target answers":     {[]balancer.Target{silent, silent}, flags{inPlace: true, leaving: true}},
		"no targets":            {nil, flags{inPlace: true, leaving: true}},
		"one has forgotten":     {[]balancer.Target{up, none}, flags{}},
		"one is still checking": {[]balancer.Target{up, has(balancer.Ready, balancer.Checking, 0)}, flags{inPlace: true}},
		"one calls it down":     {[]balancer.Target{up, has(balancer.Ready, balancer.Down, 0)}, flags{inPlace: true}},
		"down": {
			[]balancer.Target{has(balancer.Ready, balancer.Down, 0)},
			flags{inPlace: true, unhealthy: true},
		},
		"down, else silent": {
			[]balancer.Target{has(balancer.Ready, balancer.Down, 0), silent},
			flags{inPlace: true, unhealthy: true},
		},
		"down while it drains": {[]balancer.Target{has(balancer.Draining, balancer.Down, 1)}, flags{leaving: true}},
		"not checked": {
			[]balancer.Target{has(balancer.Ready, balancer.HealthUnknown, 0)},
			flags{confirmed: true, inPlace: true},
		},
		"another weight":  {[]balancer.Target{light}, flags{confirmed: true}},
		"another address": {[]balancer.Target{elsewhere()}, flags{}},
		"draining":        {[]balancer.Target{has(balancer.Draining, balancer.Up, 2)}, flags{leaving: true}},
		"drained": {
			[]balancer.Target{has(balancer.Draining, balancer.Up, 0)},
			flags{leaving: true, drained: true},
		},
		"drained, as far as seen": {[]balancer.Target{has(balancer.Draining, balancer.Up, 0), silent}, flags{leaving: true}},
		"drained here, not there": {[]balancer.Target{has(balancer.Draining, balancer.Up, 0), up}, flags{}},
		"connections unknown": {[]balancer.Target{has(balancer.Draining, balancer.HealthUnknown,
			balancer.UnknownConnections)}, flags{leaving: true}},
		"disabled": {
			[]balancer.Target{has(balancer.Disabled, balancer.Checking, 0)},
			flags{leaving: true, drained: true},
		},
		"gone":                 {[]balancer.Target{none, none}, flags{leaving: true, drained: true, gone: true}},
		"gone, as far as seen": {[]balancer.Target{none, silent}, flags{leaving: true}},
		"gone here, draining there": {
			[]balancer.Target{none, has(balancer.Draining, balancer.Up, 0)}, flags{leaving: true, drained: true},
		},
	} {
		s := balancer.Listing{Targets: test.targets}.Of(m)
		got := flags{s.Confirmed(), s.InPlace(), s.Leaving(), s.Drained(), s.Gone(), s.Unhealthy()}
		if got != test.want {
			t.Errorf("%s: %+v, want %+v, of %+v", name, got, test.want, s)
		}
	}
}

// Without a wanted weight a member has to have the balancer's default, if the balancer lists one.
//
// proves LB-1
func TestTheDefaultWeight(t *testing.T) {
	m := balancer.Member{Instance: "i", Address: "10.0.0.1", Port: 80}
	for _, test := range []struct {
		want, weight, usual int
		inPlace             bool
	}{{0, 5, 1, false}, {0, 1, 1, true}, {0, 5, 0, true}, {5, 5, 1, true}, {5, 1, 1, false}} {
		m.Weight = test.weight
		l := balancer.Listing{Targets: []balancer.Target{{Members: []balancer.Status{
			{Member: m, State: balancer.Ready, DefaultWeight: test.usual},
		}}}}
		m.Weight = test.want
		if got := l.Of(m).InPlace(); got != test.inPlace {
			t.Errorf("%+v: in place: %v", test, got)
		}
	}
}
