//go:build nightly

package senses

import (
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/stage"
)

// A replica that only serves agents is killed.
//
// proves SAFE-1, SAFE-11
func TestGatewayIsKilled(t *testing.T) {
	t.Parallel()
	s := newStage(t, stage.Plan{Replicas: 3})
	s.Apply("web", *agents)
	before := s.Settle()
	victim := s.another(s.Leader())
	s.Replicas[victim].Kill()
	s.Await("all agents at the others", func() bool { return s.Open() == *agents && len(s.Serving()[victim]) == 0 })
	s.AwaitCalm()
	s.NothingDone(before, "a replica that does not lead is killed")
	s.Sees("web")
}

// All coordinators are away for ten leases: every lease has ended when they are back.
//
// proves SAFE-1, SAFE-5, ELECT-3
func TestCoordinatorsAreAwayForLong(t *testing.T) {
	t.Parallel()
	s := newStage(t, stage.Plan{Replicas: 2})
	s.Apply("web", *agents)
	before := s.Settle()
	for _, r := range s.Replicas {
		r.Kill()
	}
	s.Pass(10 * s.TTL)
	if left := stage.Records[store.Alive](s.Stage, store.KindAlive); len(left) > 0 {
		t.Fatalf("%d leases outlive ten leases", len(left))
	}
	s.StartReplica("b")
	s.AwaitCalm()
	s.NothingDone(before, "all coordinators are away for ten leases")
	s.Sees("web")
}

// One replica of three is cut off from etcd, while the streams of its agents stay up: once one that
// only serves agents, once the one that leads.
//
// proves SAFE-1, SAFE-5, DET-14
func TestReplicaIsCutOffFromEtcd(t *testing.T) {
	t.Parallel()
	s := newStage(t, stage.Plan{Replicas: 3, BehindRelay: []string{"a", "b", "c"}})
	s.Apply("web", *agents)
	before := s.Settle()
	for _, leads := range []bool{false, true} {
		victim, what := s.Leader(), "the leader is cut off from etcd, its streams are not"
		if !leads {
			victim, what = s.another(victim), "a replica is cut off from etcd, its streams are not"
		}
		for _, way := range s.Ways("way-" + victim) {
			way.Freeze()
		}
		s.Await("all agents at the others", func() bool { return s.Open() == *agents && len(s.Serving()[victim]) == 0 })
		s.Pass(2 * s.TTL)
		s.NothingDone(before, what)
		for _, way := range s.Ways("way-" + victim) {
			way.Thaw()
		}
		s.Await("its return", func() bool {
			return stage.Records[store.Replica](s.Stage, store.KindReplicas)[victim].Present()
		})
		s.AwaitCalm()
		s.NothingDone(before, what+", and back")
	}
	s.Sees("web")
}
