package senses

import (
	"testing"
	"time"
)

// i. The wall clocks of all coordinators jump an hour, either way, and then one takes over that is an hour behind.
//
// proves SAFE-13
func TestCoordinatorsClocksJump(t *testing.T) {
	t.Parallel()
	s := newStage(t, plan{replicas: 2, wrongClocks: true})
	s.apply("web", 40)
	before := s.settle()
	set := func(id string, by time.Duration) {
		t.Helper()
		if err := s.replicas[id].setClock(by); err != nil {
			t.Fatal(err)
		}
	}
	leader := s.leader()
	other := s.another(leader)
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		set(leader, by)
		set(other, by)
		s.pass(2 * s.ttl)
		s.nothingDone(before, "the coordinators' clocks jump to "+by.String())
	}
	set(leader, time.Hour)
	s.pass(2 * time.Second) // so that records are written by it
	s.replicas[leader].kill()
	s.awaitCalm()
	s.nothingDone(before, "a leader whose clock is two hours behind takes over")
	s.sees("web")
}

// j. The wall clocks of all machines are wrong, and jump.
//
// proves SAFE-13
func TestAgentsClocksAreWrong(t *testing.T) {
	t.Parallel()
	s := newStage(t, plan{replicas: 2, wrongClocks: true})
	s.apply("web", 40)
	before := s.settle()
	for _, by := range []time.Duration{time.Hour, -time.Hour, 20 * 365 * 24 * time.Hour} {
		if err := s.swarm.setClock(by); err != nil {
			t.Fatal(err)
		}
		s.pass(2 * s.ttl)
		s.nothingDone(before, "the agents' clocks jump to "+by.String())
	}
	for _, member := range s.etcd {
		if err := member.setClock(-time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	s.pass(2 * s.ttl)
	s.nothingDone(before, "etcd's clock jumps to -1h")
	s.awaitCalm()
	s.sees("web")
}
