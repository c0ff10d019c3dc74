//go:build nightly

package senses

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/tests/stage"
)

// The wall clocks of all machines are wrong, and jump.
//
// proves SAFE-13
func TestAgentsClocksAreWrong(t *testing.T) {
	t.Parallel()
	s := newStage(t, stage.Plan{Replicas: 2, WrongClocks: true})
	s.Apply("web", 40)
	before := s.Settle()
	for _, by := range []time.Duration{time.Hour, -time.Hour, 20 * 365 * 24 * time.Hour} {
		if err := s.Swarm.SetClock(by); err != nil {
			t.Fatal(err)
		}
		s.Pass(2 * s.TTL)
		s.NothingDone(before, "the agents' clocks jump to "+by.String())
	}
	for _, member := range s.Etcd {
		if err := member.SetClock(-time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	s.Pass(2 * s.TTL)
	s.NothingDone(before, "etcd's clock jumps to -1h")
	s.AwaitCalm()
	s.Sees("web")
}
