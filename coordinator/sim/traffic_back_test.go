package sim_test

import (
	"slices"
	"testing"
	"time"
)

// soon is how long membership may be wrong after a load balancer is back. Time here is virtual, so
// the test does not depend on the machine's speed.
const soon = 10 * time.Second

// A load balancer is reloaded, restarted, away for a minute or hung, calls fail, or an operator
// takes members out: ten seconds after that it has its members again, and nothing was drained or
// replaced for it.
//
// proves LB-3, SAFE-18
func TestMembershipIsRightSoonAfterABalancerIsBack(t *testing.T) {
	const away = time.Minute
	for what, happens := range map[string]func(s *served, ids []string){
		"reloaded": func(s *served, _ []string) { s.BalancerForgets("front") },
		"restarted": func(s *served, _ []string) {
			s.BalancerSilent("front", 2*time.Second)
			s.BalancerForgets("front")
			s.run(2 * time.Second)
		},
		"away for a minute": func(s *served, _ []string) {
			s.BalancerSilent("front", away)
			s.BalancerForgets("front")
			s.run(away)
		},
		"away for a minute, and its leader is new": func(s *served, _ []string) {
			s.BalancerSilent("front", away)
			s.BalancerForgets("front")
			s.run(away / 2)
			s.KillLeader(time.Second, 0)
			s.run(away / 2)
		},
		"hung for a minute": func(s *served, _ []string) {
			s.BalancerSilent("front", away)
			s.run(away - time.Second)
			s.BalancerForgets("front")
			s.run(time.Second)
		},
		"slow for a minute": func(s *served, _ []string) {
			s.BalancerSlow("front", away)
			s.BalancerForgets("front")
			s.run(away)
		},
		"one removed by hand": func(s *served, ids []string) { s.RemoveMember("front", ids[0]) },
		"two removed by hand": func(s *served, ids []string) {
			s.RemoveMember("front", ids[0])
			s.RemoveMember("front", ids[1])
		},
		"one removed by hand while calls fail": func(s *served, ids []string) {
			s.BalancersFail(50)
			s.RemoveMember("front", ids[1])
			s.run(10 * time.Second)
			s.BalancersFail(0)
		},
	} {
		t.Run(what, func(t *testing.T) {
			longest := time.Duration(0)
			for seed := range uint64(10) {
				s := newServed(t, seed, servedGroup(4))
				s.run(3 * time.Minute)
				ids := s.Instances()
				if !s.inService(4) {
					t.Fatalf("seed %d: in service are %v", seed, s.Members("front"))
				}
				happens(s, ids)
				s.silent = s.Now()
				back := s.Now()
				for !s.inService(4) && s.Now().Sub(back) <= soon {
					s.RunUntil(s.Now().Add(100 * time.Millisecond))
				}
				took := s.Now().Sub(back)
				if longest = max(longest, took); took > soon {
					s.wrong("in service are %v %s after it is back", s.Members("front"), took)
				}
				s.run(time.Minute)
				if now := s.Instances(); !slices.Equal(now, ids) || !s.inService(4) {
					s.wrong("of %v there are %v, in service %v", ids, now, s.Members("front"))
				}
			}
			t.Logf("right again after %s at most", longest)
		})
	}
}
