package trouble

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/network"
	"github.com/leasehold/leasehold/tests/stage"
)

var ofReplicas = []Kind{
	{
		Name: "replica-killed", Weight: 3, Takes: []Part{Replicas}, Least: time.Second, Most: 8 * time.Second,
		Do: replicaKilled,
	},
	{
		Name: "replica-frozen", Weight: 4, Takes: []Part{Replicas}, Least: 2 * time.Second, Most: 14 * time.Second,
		Do: replicaFrozen,
	},
	{
		Name: "replica-stopped", Weight: 2, Takes: []Part{Replicas}, Least: time.Second, Most: 4 * time.Second,
		Do: replicaStopped,
	},
	{
		Name: "replicas-all-killed", Weight: 1, Takes: []Part{Replicas}, Least: 2 * time.Second, Most: 12 * time.Second,
		Do: replicasAllKilled,
	},
	{
		Name: "leader-lost-beside-machines", Weight: 2, Takes: []Part{Replicas}, Least: 10 * time.Second,
		Most: 16 * time.Second, Do: leaderLostBesideMachines,
	},
	{
		Name: "leases-dropped", Weight: 2, Takes: []Part{Replicas}, Least: 1500 * time.Millisecond,
		Most: 2500 * time.Millisecond, Do: leasesDropped,
	},
	{
		Name: "replicas-all-frozen", Weight: 1, Takes: []Part{Replicas}, Least: 2 * time.Second, Most: 12 * time.Second,
		Do: replicasAllFrozen,
	},
}

// replica chooses a replica, more often than not the leader.
func replica(s *Site) (id, what string) {
	if leads := s.LeaderNow(); leads != "" && s.Chance(60) {
		return leads, "replica " + leads + ", which leads"
	}
	id = pick(s, s.ReplicaIDs())
	return id, "replica " + id
}

func replicaKilled(_ context.Context, s *Site) (string, func() error, error) {
	id, what := replica(s)
	s.Replica(id).Kill()
	return what, func() error { return s.RaiseReplica(id) }, nil
}

func replicaStopped(_ context.Context, s *Site) (string, func() error, error) {
	id, what := replica(s)
	s.Replica(id).Terminate()
	return what, func() error {
		select {
		case <-s.Replica(id).Ended():
		case <-time.After(stage.Longest):
			return fmt.Errorf("replica %s was told to end, and does not", id)
		}
		return s.RaiseReplica(id)
	}, nil
}

func replicaFrozen(_ context.Context, s *Site) (string, func() error, error) {
	id, what := replica(s)
	p := s.Replica(id)
	p.Freeze()
	return what, func() error { p.Thaw(); return nil }, nil
}

func replicasAllKilled(_ context.Context, s *Site) (string, func() error, error) {
	for _, id := range s.ReplicaIDs() {
		s.Replica(id).Kill()
	}
	return "all of them", func() error {
		for _, id := range s.ReplicaIDs() {
			if err := s.RaiseReplica(id); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func replicasAllFrozen(_ context.Context, s *Site) (string, func() error, error) {
	for _, id := range s.ReplicaIDs() {
		s.Replica(id).Freeze()
	}
	return "all of them", func() error {
		for _, id := range s.ReplicaIDs() {
			s.Replica(id).Thaw()
		}
		return nil
	}, nil
}

// leaderLostBesideMachines: machines are cut off, and before their leases end another replica
// becomes leader, which has not heard them yet (SAFE-1).
func leaderLostBesideMachines(ctx context.Context, s *Site) (string, func() error, error) {
	hit, err := machines(s, 2)
	leads := s.LeaderNow()
	if err != nil || leads == "" {
		return "", nil, errNoTarget{"leader and machine"}
	}
	mend := s.CutMachines(func(id string) bool { return slices.Contains(hit, id) }, network.Rule{Silent: true})
	how, before := "ended", s.between(500*time.Millisecond, 4*time.Second)
	if s.Chance(50) { // its successor comes when its session has ended
		how, before = "killed", s.between(0, time.Second)
	}
	wait(ctx, before)
	if how == "killed" {
		s.Replica(leads).Kill()
	} else {
		s.Replica(leads).Terminate()
	}
	return fmt.Sprintf("%v are cut off, and %s later replica %s is %s", hit, before, leads, how), func() error {
		<-s.Replica(leads).Ended()
		return errors.Join(mend(), s.RaiseReplica(leads))
	}, nil
}

// leasesDropped: a replica freezes, and etcd drops leases of agents that it serves. They cannot be
// restored until the agents have moved (DET-17).
func leasesDropped(ctx context.Context, s *Site) (string, func() error, error) {
	ids := slices.DeleteFunc(s.ReplicaIDs(), func(id string) bool { return id == s.LeaderNow() })
	id := pick(s, ids)
	var served []store.LeaseID
	for _, kv := range s.Witness.Now().Of(s.Keys.Of(store.KindAlive)) {
		if v, err := store.Decode[store.Alive](kv); err == nil && v.Record.Replica == id &&
			v.Record.State == store.StreamOpen {
			served = append(served, kv.Lease)
		}
	}
	if len(served) == 0 {
		return "", nil, errNoTarget{"agent of replica " + id}
	}
	p := s.Replica(id)
	p.Freeze()
	var failed error
	hit := some(s, 2, served)
	for _, lease := range hit {
		failed = errors.Join(failed, s.Store.Revoke(ctx, lease))
	}
	return fmt.Sprintf("%d of replica %s, which is frozen", len(hit), id), func() error { p.Thaw(); return nil }, failed
}
