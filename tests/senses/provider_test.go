package senses

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/senses/swarm"
)

// f. A provider whose List is empty, cut short, old, late, or wrong, for as long as it likes: agents that report refute it. Nothing
// but a provider that insists that a machine has crashed is believed against its agent, and it has to say so twice.
//
// proves DET-4, SAFE-2
func TestProviderLies(t *testing.T) {
	t.Parallel()
	s := newStage(t, plan{replicas: 2})
	s.apply("web", 40)
	before := s.settle()
	for _, lie := range []struct {
		what string
		lie  swarm.Lie
	}{
		{"List is empty", swarm.Lie{Kind: swarm.Empty}},
		{"List shows every second machine", swarm.Lie{Kind: swarm.Truncated}},
		{"List comes 5s late", swarm.Lie{Delay: 5 * time.Second}},
		{"List says once that all have crashed", swarm.Lie{Kind: swarm.Crashed, Times: 1}},
		{"List says that all have crashed, in boots that nobody knows", swarm.Lie{Kind: swarm.OtherBoot}},
		{"List has states and zones that there are not, and all twice", swarm.Lie{Kind: swarm.Odd}},
	} {
		s.lie(lie.lie)
		s.listed(4)
		s.nothingDone(before, lie.what)
	}
	// At its worst: a List that is empty while the leader dies, and with it every stream that it had.
	s.lie(swarm.Lie{Kind: swarm.Empty})
	leader := s.leader()
	s.replicas[leader].kill()
	s.awaitCalm()
	s.listed(4)
	s.nothingDone(before, "List is empty, and the leader is killed")
	s.lie(swarm.Lie{Kind: swarm.Truth})
	s.awaitCalm()
	s.sees("web")
}

// f. A provider whose List is as it was before the group grew.
//
// proves DET-4
func TestProviderIsBehind(t *testing.T) {
	t.Parallel()
	s := newStage(t, plan{replicas: 1})
	s.apply("web", 10)
	s.lie(swarm.Lie{Kind: swarm.Stale})
	s.listed(2)
	s.leasehold("group", "scale", "web", "20")
	s.await("ten more", func() bool { return len(s.members("web")) == 20 && s.open() == 20 })
	before := s.mark()
	s.listed(10)
	if c := s.since(before); c.Created != 0 || c.Destroyed != 0 || c.Judged != 0 {
		t.Fatalf("List shows nothing of the ten newest: %s", c)
	}
	s.lie(swarm.Lie{Kind: swarm.Truth})
	s.await("web being complete", func() bool { return s.complete("web", 20) })
	s.awaitCalm()
	if n := len(records[store.Instance](s, store.KindInstances)); n != 20 {
		t.Fatalf("there are %d instances", n)
	}
	s.sees("web")
}

func (s *stage) lie(l swarm.Lie) {
	s.t.Helper()
	if err := s.control.Lie(l); err != nil {
		s.t.Fatal(err)
	}
}

// listed waits until the coordinator has asked for so many more Lists.
func (s *stage) listed(more int) {
	s.t.Helper()
	until := s.countMachines().Lists + more
	s.await("more Lists", func() bool { return s.countMachines().Lists >= until })
}
