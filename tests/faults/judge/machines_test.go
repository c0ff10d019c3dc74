package judge

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

func TestAMachineThatFailsAndIsReplacedBreaksNothing(t *testing.T) {
	s := web(t)
	s.harm("web-0-aaaaaa", history.Sick)
	s.shows("web-0-aaaaaa", false)
	s.requested("web", "web-0-bbbbbb", 0, "web-0-aaaaaa")
	s.made("web-0-bbbbbb")
	s.healthy("web-0-bbbbbb")
	s.step("web-0-aaaaaa", store.Deleting)
	s.removed("web-0-aaaaaa")
	s.mark(history.Mark{What: history.Quiet, Machines: []string{"web-0-bbbbbb", "web-1-aaaaaa"}})
	s.innocent()
}

func TestAnIDIsNeverUsedAgain(t *testing.T) {
	s := web(t)
	s.machine("web-0-aaaaaa", history.Made)
	s.broken("SAFE-8")

	s = web(t)
	s.operator(put(s.keys.Request("r"),
		store.Request{Schema: 1, ID: "r", Kind: store.RequestDelete, Instance: "web-0-aaaaaa"}))
	s.txn(drop(s.keys.Request("r")),
		s.record("web-0-aaaaaa", func(r *store.Instance) { r.Condemned = &store.Condemned{Now: true} }))
	s.step("web-0-aaaaaa", store.Deleting)
	s.removed("web-0-aaaaaa")
	s.innocent()
	s.machine("web-0-aaaaaa", history.Made)
	s.broken("SAFE-8")
}

func TestAProviderIsAskedForWhatIsRecordedOnly(t *testing.T) {
	for _, m := range []history.Method{history.Create, history.Stop, history.Delete, history.Restart} {
		s := web(t)
		s.requested("web", "web-2-aaaaaa", 2, "")
		s.call(m, "web-2-aaaaaa")
		s.broken("SAFE-8")
	}
	s := web(t)
	s.requested("web", "web-2-aaaaaa", 2, "")
	s.begun(history.Create, "web-2-aaaaaa") // before it is recorded
	s.step("web-2-aaaaaa", store.Creating)
	s.ended(history.Create, "web-2-aaaaaa")
	s.broken("SAFE-8")
}

func TestTheWatcherMayBeLate(t *testing.T) {
	s := tell(t)
	s.lag = 5 * time.Second
	s.group("web", 1)
	s.born("web", "web-0-aaaaaa", 0)
	s.innocent()
}

// Where etcd's history started over, another transaction may have the revision of the first.
func TestTheWatcherMayBeLateBeforeRevisionsBeginAnew(t *testing.T) {
	s := tell(t)
	s.lag = 5 * time.Second
	s.group("web", 1)
	s.requested("web", "web-0-aaaaaa", 0, "")
	s.made("web-0-aaaaaa")
	creating := s.rev - 1
	s.healthy("web-0-aaaaaa")
	s.pass(20 * time.Second)
	c := history.Commit{ID: 99, Replica: "a", Process: 1, Fence: s.fence, Keys: []string{s.keys.Instance("web-0-aaaaaa")}}
	s.add(history.Event{Commit: &c})
	s.pass(beat)
	ended := c
	ended.Ended, ended.Outcome, ended.At = true, history.Happened, creating
	s.add(history.Event{Commit: &ended})
	s.innocent()
}

func TestNothingIsMadeWhenTheRecordIsGone(t *testing.T) {
	s := web(t)
	s.group("web", 1)
	s.step("web-1-aaaaaa", store.Deleting)
	s.removed("web-1-aaaaaa")
	s.innocent()
	s.pass(time.Minute)
	s.call(history.Create, "web-1-aaaaaa")
	s.broken("SAFE-8")
}

func TestCallsForOneIDDoNotOverlap(t *testing.T) {
	overlapping := func(change func(first, second, end *history.Call)) *story {
		s := web(t)
		s.group("web", 1)
		s.step("web-1-aaaaaa", store.Deleting)
		first := history.Call{ID: 91, Replica: "a", Method: history.Stop, Instance: "web-1-aaaaaa"}
		second, end := first, first
		second.ID, end.Ended = 92, true
		change(&first, &second, &end)
		for _, c := range []*history.Call{&first, &second, &end} {
			s.add(history.Event{Call: c})
			s.pass(beat)
		}
		return s
	}
	overlapping(func(_, _, _ *history.Call) {}).broken("SAFE-8")
	overlapping(func(_, second, _ *history.Call) { second.Replica = "b" }).innocent()
	overlapping(func(_, _, end *history.Call) { end.Lie = "answered late" }).innocent()
	overlapping(func(_, _, end *history.Call) { end.Lie = history.Slow }).broken("SAFE-8") // its caller waits
	// it never ended: its replica was killed
	overlapping(func(_, _, end *history.Call) { end.ID = 93 }).innocent()
}

func TestASlotHasOneInstanceAndItsReplacement(t *testing.T) {
	s := web(t)
	s.requested("web", "web-0-bbbbbb", 0, "")
	s.broken("SAFE-8")

	s = web(t)
	s.harm("web-0-aaaaaa", history.Sick)
	s.requested("web", "web-0-bbbbbb", 0, "web-0-aaaaaa")
	s.innocent()
	s.group("web", 2, func(g *store.Group) { g.Budget.MaxExpansion = 2 })
	s.requested("web", "web-0-cccccc", 0, "web-0-aaaaaa")
	s.broken("HEAL-13")
}

func TestEveryMachineHasARecordInTheEndAndEveryRecordAMachine(t *testing.T) {
	quiet := func(machines ...string) *story {
		s := web(t)
		s.mark(history.Mark{What: history.Quiet, Machines: machines})
		return s
	}
	quiet("web-0-aaaaaa", "web-1-aaaaaa").innocent()
	quiet("web-0-aaaaaa", "web-1-aaaaaa", "web-9-aaaaaa").broken("REC-8")
	quiet("web-0-aaaaaa").broken("SAFE-8")
}

// What was made before etcd was wiped may wait for an operator; what was made since may not.
func TestAfterAWipeTheMachinesOfBeforeMayBeThere(t *testing.T) {
	s := web(t)
	s.line, s.rev, s.world = 1, 0, map[string]store.Instance{}
	s.group("web", 0)
	s.mark(history.Mark{What: history.Quiet, Machines: []string{"web-0-aaaaaa", "web-1-aaaaaa"}})
	s.innocent()
	s.pass(time.Minute)
	s.machine("web-5-aaaaaa", history.Made)
	s.mark(history.Mark{What: history.Quiet, Machines: []string{"web-0-aaaaaa", "web-1-aaaaaa", "web-5-aaaaaa"}})
	s.broken("REC-8")
}
