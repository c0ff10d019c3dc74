package senses

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/tests/stage"
)

// A provider whose List is empty, cut short, old, late, or wrong, for as long as it likes: agents
// that report refute it. Nothing but a provider that insists that a machine has crashed is believed
// against its agent, and it has to say so twice.
//
// proves DET-4, SAFE-2
func TestProviderLies(t *testing.T) {
	t.Parallel()
	s := newStage(t, stage.Plan{Replicas: 2})
	s.Apply("web", 40)
	before := s.Settle()
	for _, lie := range []struct {
		what string
		lie  fake.Lie
	}{
		{"List is empty", fake.Lie{Kind: fake.Empty}},
		{"List shows every second machine", fake.Lie{Kind: fake.Halved}},
		{"List leaves out one machine", fake.Lie{Kind: fake.Short}},
		{"List comes 5s late", fake.Lie{Delay: 5 * time.Second}},
		{"List says once that all have crashed", fake.Lie{Kind: fake.AllCrashed, Times: 1}},
		{"List says that all have crashed, in unknown boots", fake.Lie{Kind: fake.OtherBoot}},
		{"List has states and zones that there are not, and all twice", fake.Lie{Kind: fake.Odd}},
	} {
		s.lie(lie.lie)
		s.listed(4)
		s.NothingDone(before, lie.what)
	}
	// At its worst: a List that is empty while the leader dies, and with it every stream that it
	// had.
	s.lie(fake.Lie{Kind: fake.Empty})
	leader := s.Leader()
	s.Replicas[leader].Kill()
	s.AwaitCalm()
	s.listed(4)
	s.NothingDone(before, "List is empty, and the leader is killed")
	s.lie(fake.Lie{Kind: fake.Truth})
	s.AwaitCalm()
	s.Sees("web")
}

func (s *scene) lie(l fake.Lie) {
	s.T.Helper()
	if err := s.Control.Lie(l); err != nil {
		s.T.Fatal(err)
	}
}

// listed waits until the coordinator has requested so many more Lists.
func (s *scene) listed(more int) {
	s.T.Helper()
	until := s.CountMachines().Lists + more
	s.Await("more Lists", func() bool { return s.CountMachines().Lists >= until })
}
