//go:build nightly

package senses

import (
	"context"
	"testing"
	"time"

	"github.com/leasehold/leasehold/tests/faults/disk"
	"github.com/leasehold/leasehold/tests/stage"
)

// The leader of three members stands still. The others elect another and renewals go on; on waking
// the deposed one still has live leases revoked.
//
// proves SAFE-1, SAFE-5, DET-17
func TestEtcdLeaderFreezes(t *testing.T) {
	t.Parallel()
	s := newStage(t, stage.Plan{Replicas: 2, Members: 3})
	s.Apply("web", *agents)
	before := s.Settle()
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), stage.Longest)
		leads, err := s.members().Leader(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		s.Etcd[leads].Freeze()
		s.Pass(s.TTL + 8*time.Second)
		s.Etcd[leads].Thaw()
		s.AwaitCalm()
		s.NothingDone(before, "etcd's leader, of three members, stands still")
	}
	t.Logf("leases of living agents that etcd ended: %d", s.ended(before))
	s.Sees("web")
}

// etcd's disk takes no writes for 30 seconds, six leases long.
//
// proves SAFE-1, SAFE-5
func TestDiskStalls(t *testing.T) {
	t.Parallel()
	d, err := disk.MountExt4(600 << 20)
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, stage.Plan{Replicas: 2, Disk: d.Dir})
	s.Leave = func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	s.Apply("web", 40)
	before := s.Settle()
	if err := d.Freeze(); err != nil {
		t.Fatal(err)
	}
	s.Pass(30 * time.Second)
	if err := d.Thaw(); err != nil {
		t.Fatal(err)
	}
	s.AwaitCalm()
	s.NothingDone(before, "etcd's disk takes no writes for 30s")
	s.Sees("web")
}
