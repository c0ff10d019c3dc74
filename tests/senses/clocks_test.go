package senses

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/tests/stage"
)

// The wall clocks of all coordinators jump an hour, either way, and then one takes over that is an
// hour behind.
//
// proves SAFE-13
func TestCoordinatorsClocksJump(t *testing.T) {
	t.Parallel()
	s := newStage(t, stage.Plan{Replicas: 2, WrongClocks: true})
	s.Apply("web", 40)
	before := s.Settle()
	set := func(id string, by time.Duration) {
		t.Helper()
		if err := s.Replicas[id].SetClock(by); err != nil {
			t.Fatal(err)
		}
	}
	leader := s.Leader()
	other := s.another(leader)
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		set(leader, by)
		set(other, by)
		s.Pass(2 * s.TTL)
		s.NothingDone(before, "the coordinators' clocks jump to "+by.String())
	}
	set(leader, time.Hour)
	s.Pass(2 * time.Second) // so that records are written by it
	s.Replicas[leader].Kill()
	s.AwaitCalm()
	s.NothingDone(before, "a leader whose clock is two hours behind takes over")
	s.Sees("web")
}
