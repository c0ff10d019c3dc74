package judge

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

func (s *story) member(id string, what history.MembershipStep, replica string) {
	s.add(history.Event{Membership: &history.Membership{Instance: id, What: what, Replica: replica}})
	s.pass(beat)
}

// looks: the leader lists the load balancer so often, once a second.
func (s *story) looks(times int, ready ...string) {
	for range times {
		s.add(history.Event{Membership: &history.Membership{
			What: history.Listed, Replica: "a", Ready: ready,
			Began: s.now - 1,
		}})
		s.pass(time.Second)
	}
}

// inState has a record say what is wanted of its membership.
func inState(state store.TrafficState) func(*store.Instance) {
	return func(r *store.Instance) {
		r.Traffic = []store.Traffic{{Balancer: "front", Address: "10.0.0.1", Port: 80, State: state}}
		if !state.Wanted() {
			r.Traffic[0].Timer = &store.Timer{For: store.Duration(time.Minute)}
		}
	}
}

func toldToDrain(r *store.Instance) { r.Drain.Token = "told" }

func toDrain(r *store.Instance) {
	r.Drain = &store.Drain{Timer: store.Timer{For: store.Duration(time.Minute)}}
}

// inService is a web with one of its two behind a load balancer, which is ordered to go.
func inService(t *testing.T) *story {
	s := web(t)
	s.step(one, store.Running, inState(store.TrafficJoining))
	s.member(one, history.Serves, "a")
	s.step(one, store.Running, inState(store.TrafficServing), func(r *store.Instance) { r.Condemned = &store.Condemned{} })
	return s
}

func TestAnInstanceLeavesInOrder(t *testing.T) {
	s := inService(t)
	s.looks(10, one)
	s.step(one, store.Draining, toDrain, inState(store.TrafficDraining))
	s.looks(2, one) // what was decided is under way
	s.member(one, history.Drains, "a")
	s.step(one, store.Draining, toldToDrain)
	s.step(one, store.Deleting, inState(store.TrafficLeaving))
	s.member(one, history.Leaves, "a")
	s.removed(one)
	s.innocent()
}

func TestAnInstanceIsDrainedBeforeItHasLeft(t *testing.T) {
	s := inService(t)
	s.step(one, store.Draining, toDrain, inState(store.TrafficDraining))
	s.step(one, store.Draining, toldToDrain)
	s.broken("LB-1")
	s = inService(t)
	s.step(one, store.Draining, toDrain, inState(store.TrafficDraining))
	s.add(history.Event{Membership: &history.Membership{Instance: one, What: history.Failed, Replica: "a", Call: "drain"}})
	s.pass(40 * time.Second) // more than half of its time
	s.step(one, store.Draining, toldToDrain)
	s.innocent()
}

func TestAMachineIsStoppedInService(t *testing.T) {
	for _, dead := range []bool{false, true} {
		s := inService(t)
		s.step(one, store.Draining, toDrain)
		s.step(one, store.Deleting, inState(store.TrafficLeaving), func(r *store.Instance) { r.Dead = dead })
		s.removed(one)
		if dead {
			s.innocent()
		} else {
			s.broken("LB-1")
		}
	}
}

func TestAMembershipIsConfirmedUnseen(t *testing.T) {
	s := web(t)
	s.step(one, store.Running, inState(store.TrafficJoining))
	s.step(one, store.Running, inState(store.TrafficServing))
	s.member(one, history.Serves, "a")
	s.broken("LB-2")
}

func TestSomebodyIsInServiceWhoShouldNotBe(t *testing.T) {
	leave := func() *story {
		s := inService(t)
		s.step(one, store.Draining, toDrain, inState(store.TrafficDraining))
		return s
	}
	s := leave()
	s.looks(maxLooks, one)
	s.innocent()
	s.looks(1, one)
	s.broken("LB-3")

	s = leave() // a call that failed is tried again
	s.looks(maxLooks, one)
	s.add(history.Event{Membership: &history.Membership{Instance: one, What: history.Failed, Replica: "a", Call: "drain"}})
	s.looks(maxLooks, one)
	s.innocent()

	s = leave() // no leader can act
	s.add(history.Event{Trouble: &history.Trouble{ID: 1, Kind: "quorum-lost"}})
	s.looks(20, one)
	s.innocent()

	s = inService(t) // back by a late call, after it was deleted
	s.step(one, store.Draining, toDrain, inState(store.TrafficDraining))
	s.member(one, history.Drains, "a")
	s.step(one, store.Deleting, inState(store.TrafficLeaving))
	s.member(one, history.Leaves, "a")
	s.removed(one)
	s.member(one, history.Serves, "")
	s.looks(20, one)
	s.innocent() // whether that was on purpose is not known
	s.operator(put(s.keys.Gone(s.keys.Instance(one)), store.Gone{Schema: 1}))
	s.looks(maxLooks+1, one)
	s.broken("LB-3")
}

func TestAFileIsHalfWritten(t *testing.T) {
	s := web(t)
	s.add(history.Event{Torn: &history.Torn{Instance: one, Path: "edition", What: "it is \"beg\""}})
	s.broken("FILE-3")
}

// etcd was restored, and a record gets a revision that another content of it had before: it says
// nothing of the time before the restore.
func TestARevisionThatCameTwice(t *testing.T) {
	s := inService(t)
	served := s.rev
	s.looks(maxLooks+1, one)
	s.line, s.rev = s.line+1, served-10
	for _, w := range []write{
		put(s.keys.Group("web"), s.specs["web"]), put(s.keys.Shard(), store.Shard{Schema: 1, ID: "s"}),
		put(s.keys.Instance(one), s.world[one]),
	} {
		s.rev++
		s.add(history.Event{Change: &history.Change{
			Line: s.line, Revision: s.rev, Key: w.key, Value: w.value, Found: true,
		}})
	}
	s.held(true)
	s.held(false)
	s.rev = served - 1
	s.step(one, store.Draining, toDrain, inState(store.TrafficDraining))
	s.innocent()
}
