package senses

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/stage"
)

// d. etcd is down for longer than a lease lasts, and comes back on its data.
//
// proves SAFE-1, SAFE-5
func TestEtcdIsDownForLong(t *testing.T) {
	t.Parallel()
	s := newStage(t, stage.Plan{Replicas: 2})
	s.Apply("web", crowd())
	before := s.Settle()
	s.Etcd[0].Kill()
	s.Pass(s.TTL + 5*time.Second)
	s.StartMember(0)
	s.AwaitReady(s.Etcd[0])
	s.AwaitCalm()
	s.NothingDone(before, "etcd is down for longer than a lease")
	s.Sees("web")
}

// d. The only member of etcd stands still for longer than a lease, as a virtual machine that is moved. On waking it ends leases
// whose agents live.
//
// proves SAFE-1, SAFE-5, DET-17
func TestEtcdFreezesUnderMany(t *testing.T) {
	t.Parallel()
	s := newStage(t, stage.Plan{Replicas: 2})
	s.Apply("web", crowd())
	before := s.Settle()
	s.Etcd[0].Freeze()
	s.Pass(s.TTL + 8*time.Second)
	s.Etcd[0].Thaw()
	s.AwaitCalm()
	s.NothingDone(before, "etcd stands still for longer than a lease")
	t.Logf("leases of living agents that etcd ended: %d", s.ended(before))
	s.Sees("web")
}

// d. The leader of three members stands still. The others elect another and renewals go on; on waking the deposed one still has
// live leases revoked.
//
// proves SAFE-1, SAFE-5, DET-17
func TestEtcdLeaderFreezes(t *testing.T) {
	t.Parallel()
	s := newStage(t, stage.Plan{Replicas: 2, Members: 3})
	s.Apply("web", crowd())
	before := s.Settle()
	for range 2 {
		leads := s.etcdLeader()
		s.Etcd[leads].Freeze()
		s.Pass(s.TTL + 8*time.Second)
		s.Etcd[leads].Thaw()
		s.AwaitCalm()
		s.NothingDone(before, "etcd's leader, of three members, stands still")
	}
	t.Logf("leases of living agents that etcd ended: %d", s.ended(before))
	s.Sees("web")
}

// g. etcd's disk takes no writes for 30 seconds, six leases long.
//
// proves SAFE-1, SAFE-5
func TestDiskStalls(t *testing.T) {
	t.Parallel()
	d := mountDisk(t)
	s := newStage(t, stage.Plan{Replicas: 2, Disk: d.dir})
	s.Leave = d.unmount
	s.Apply("web", 40)
	before := s.Settle()
	d.freeze()
	s.Pass(30 * time.Second)
	d.thaw()
	s.AwaitCalm()
	s.NothingDone(before, "etcd's disk takes no writes for 30s")
	s.Sees("web")
}

// h. The watches of all replicas break, and when they would go on where they were, etcd has forgotten that.
//
// proves SAFE-3, SAFE-1
func TestWatchIsCompacted(t *testing.T) {
	t.Parallel()
	s := newStage(t, stage.Plan{Replicas: 2, BehindRelay: []string{"a", "b"}})
	s.Apply("web", 40)
	before := s.Settle()
	for _, way := range s.Ways("way-") {
		way.Kill()
	}
	s.compact(20)
	for name := range s.Relays {
		s.RelayAgain(name)
	}
	s.Await("replicas whose watch was compacted", func() bool {
		for _, r := range s.Replicas {
			if !strings.Contains(r.Said(), "revision compacted") {
				return false
			}
		}
		return true
	})
	s.AwaitCalm()
	s.NothingDone(before, "etcd forgets what a watch has not seen")
	s.Sees("web")
}

// ended is how many leases of agents etcd has ended since a moment. All of these agents are alive.
func (s *scene) ended(since stage.Mark) (n int) {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.T.Context(), stage.Longest)
	defer cancel()
	now := s.Mark().Revision
	for batch := range s.Store.Watch(ctx, s.Keys.Of(store.KindAlive), since.Revision+1) {
		if batch.Err != nil {
			s.T.Fatal(batch.Err)
		}
		for _, e := range batch.Events {
			if e.Deleted && e.KV.Modified <= now {
				n++
			}
		}
		if batch.Revision >= now {
			break
		}
	}
	return n
}

// compact writes something a number of times and has etcd forget all that was before.
func (s *scene) compact(writes int) {
	s.T.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: s.Clients, DialTimeout: stage.Longest, Logger: zap.NewNop()})
	if err != nil {
		s.T.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(s.T.Context(), stage.Longest)
	defer cancel()
	var last int64
	for i := range writes {
		answer, err := client.Put(ctx, "/elsewhere", strconv.Itoa(i))
		if err != nil {
			s.T.Fatal(err)
		}
		last = answer.Header.Revision
	}
	if _, err := client.Compact(ctx, last); err != nil {
		s.T.Fatal(err)
	}
}

// etcdLeader is the member of etcd that leads.
func (s *scene) etcdLeader() int {
	s.T.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: s.Clients, DialTimeout: stage.Longest, Logger: zap.NewNop()})
	if err != nil {
		s.T.Fatal(err)
	}
	defer client.Close()
	leads := -1
	s.Await("a leader of etcd", func() bool {
		for i, endpoint := range s.Clients {
			ctx, cancel := context.WithTimeout(s.T.Context(), time.Second)
			st, err := client.Status(ctx, endpoint)
			cancel()
			if err == nil && st.Header.MemberId == st.Leader {
				leads = i
				return true
			}
		}
		return false
	})
	return leads
}
