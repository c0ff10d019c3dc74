package trouble

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/tests/faults/network"
	"github.com/leasehold/leasehold/tests/stage"
)

// A host of leasehold server is a member of etcd and a replica, which go together.
var ofHosts = []Kind{
	{
		Name: "host-killed", Weight: 4, Takes: []Part{Etcd, Replicas}, Least: time.Second, Most: 10 * time.Second,
		On: Servers, Do: hostKilled,
	},
	{
		Name: "host-frozen", Weight: 4, Takes: []Part{Etcd, Replicas}, Least: 2 * time.Second, Most: 14 * time.Second,
		On: Servers, Do: hostFrozen,
	},
	{
		Name: "host-stopped", Weight: 3, Takes: []Part{Etcd, Replicas}, Least: time.Second, Most: 6 * time.Second,
		On: Servers, Do: hostStopped,
	},
	{
		Name: "supervisor-frozen", Weight: 1, Takes: []Part{Etcd, Replicas}, Least: 4 * time.Second,
		Most: 14 * time.Second, On: Servers, Do: supervisorFrozen,
	},
	{
		Name: "hosts-mostly-lost", Weight: 2, Takes: []Part{Etcd, Replicas}, Least: 2 * time.Second,
		Most: 15 * time.Second, On: Servers, Do: hostsMostlyLost,
	},
	{
		Name: "host-cut-from-hosts", Weight: 3, Takes: []Part{Etcd}, Least: 2 * time.Second, Most: 15 * time.Second,
		On: Servers, Do: hostCut,
	},
	{
		Name: "host-replaced", Weight: 3, Takes: []Part{Etcd, Replicas, Disks, Clocks}, Least: time.Second,
		Most: 5 * time.Second, On: Servers, Do: hostReplaced,
	},
}

// host chooses a host, more often than not the leader's.
func host(s *Site) (i int, h *stage.Host) {
	i = s.IntN(len(s.Hosts))
	if leads := slices.Index(s.ReplicaIDs(), s.LeaderNow()); leads >= 0 && s.Chance(60) {
		i = leads
	}
	return i, s.Hosts[i]
}

func hostKilled(_ context.Context, s *Site) (string, func() error, error) {
	_, h := host(s)
	h.PowerOff()
	return h.ID, func() error { return h.Start() }, nil
}

func hostFrozen(_ context.Context, s *Site) (string, func() error, error) {
	_, h := host(s)
	h.Freeze()
	return h.ID, func() error { h.Thaw(); return nil }, nil
}

func hostStopped(_ context.Context, s *Site) (string, func() error, error) {
	_, h := host(s)
	if err := h.Stop(); err != nil {
		return h.ID, nil, err
	}
	return h.ID, func() error { return h.Start() }, nil
}

// supervisorFrozen: the supervisor of a host stands still, and a part of it that is killed is
// started again only after that.
func supervisorFrozen(_ context.Context, s *Site) (string, func() error, error) {
	_, h := host(s)
	h.FreezeSupervisor()
	name, part := "member", h.Member
	if s.Chance(50) {
		name, part = "replica", h.Replica
	}
	part.Kill()
	return fmt.Sprintf("of %s, and its %s killed", h.ID, name), func() error { h.Thaw(); return nil }, nil
}

func hostsMostlyLost(_ context.Context, s *Site) (string, func() error, error) {
	hit := s.Perm(len(s.Hosts))[:2]
	frozen := s.Chance(50)
	for _, i := range hit {
		if frozen {
			s.Hosts[i].Freeze()
		} else {
			s.Hosts[i].PowerOff()
		}
	}
	return fmt.Sprintf("%v, frozen: %t", hit, frozen), func() (err error) {
		for _, i := range hit {
			s.Hosts[i].Thaw()
			err = errors.Join(err, s.Hosts[i].Start())
		}
		return err
	}, nil
}

// hostCut: a host and the others do not hear each other, or only one way. Agents reach all of them.
func hostCut(_ context.Context, s *Site) (string, func() error, error) {
	i, h := host(s)
	own := network.Any(h.ID, fmt.Sprintf("m%d", i))
	others := func(party string) bool { return !s.IsMachine(party) && !own(party) }
	r := cutting(s)
	r.From, r.To = own, others
	return h.ID + ", " + how(r), impose(s, r), nil
}

// hostReplaced: a host is lost with its disk. Another one takes its place, with its name.
func hostReplaced(_ context.Context, s *Site) (string, func() error, error) {
	i, h := host(s)
	return h.ID, func() error { return s.ReplaceHost(i) }, s.LoseHost(i)
}
