package senses

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

// a. The leader is killed while a crowd of agents reports, most of them to it: all of those have to move.
//
// proves SAFE-1, SAFE-11, ELECT-2
func TestLeaderOfManyIsKilled(t *testing.T) {
	t.Parallel()
	s := newStage(t, plan{replicas: 2})
	s.apply("web", *agents)
	before := s.settle()
	leader := s.leader()
	s.replicas[leader].kill()
	s.await("another leader", func() bool { l := s.leader(); return l != "" && l != leader })
	s.await("all agents at the other", func() bool { return s.open() == *agents && len(s.serving()[leader]) == 0 })
	s.awaitCalm()
	s.nothingDone(before, "the leader is killed")
	s.sees("web")
}

// b. A replica that only serves agents is killed.
//
// proves SAFE-1, SAFE-11
func TestGatewayIsKilled(t *testing.T) {
	t.Parallel()
	s := newStage(t, plan{replicas: 3})
	s.apply("web", crowd())
	before := s.settle()
	victim := s.another(s.leader())
	s.replicas[victim].kill()
	s.await("all agents at the others", func() bool { return s.open() == crowd() && len(s.serving()[victim]) == 0 })
	s.awaitCalm()
	s.nothingDone(before, "a replica that does not lead is killed")
	s.sees("web")
}

// c. All coordinators are away for ten leases: every lease has ended when they are back.
//
// proves SAFE-1, SAFE-5, ELECT-3
func TestCoordinatorsAreAwayForLong(t *testing.T) {
	t.Parallel()
	s := newStage(t, plan{replicas: 2})
	s.apply("web", crowd())
	before := s.settle()
	for _, r := range s.replicas {
		r.kill()
	}
	s.pass(10 * s.ttl)
	if left := records[store.Alive](s, store.KindAlive); len(left) > 0 {
		t.Fatalf("%d leases outlive ten leases", len(left))
	}
	s.startReplica("b")
	s.awaitCalm()
	s.nothingDone(before, "all coordinators are away for ten leases")
	s.sees("web")
}

// another is a replica that is not this one.
func (s *stage) another(than string) string {
	for i := range s.plan.replicas {
		if id := string(rune('a' + i)); id != than {
			return id
		}
	}
	return ""
}

// e. One replica of three is cut off from etcd, while the streams of its agents stay up: once one that only serves agents, once the
// one that leads.
//
// proves SAFE-1, SAFE-5, DET-14
func TestReplicaIsCutOffFromEtcd(t *testing.T) {
	t.Parallel()
	s := newStage(t, plan{replicas: 3, behindRelay: []string{"a", "b", "c"}})
	s.apply("web", crowd())
	before := s.settle()
	for _, leads := range []bool{false, true} {
		victim, what := s.leader(), "the leader is cut off from etcd, its streams are not"
		if !leads {
			victim, what = s.another(victim), "a replica is cut off from etcd, its streams are not"
		}
		for _, way := range s.ways("way-" + victim) {
			way.freeze()
		}
		s.await("all agents at the others", func() bool { return s.open() == crowd() && len(s.serving()[victim]) == 0 })
		s.pass(2 * s.ttl)
		s.nothingDone(before, what)
		for _, way := range s.ways("way-" + victim) {
			way.thaw()
		}
		s.await("its return", func() bool { return records[store.Replica](s, store.KindReplicas)[victim].Present() })
		s.awaitCalm()
		s.nothingDone(before, what+", and back")
	}
	s.sees("web")
}
